// linear at 2 bits, codebook 3inst.
#include "exl3/linear.cuh"

template struct exl3::Linear<2, exl3::Codebook::inst3>;
