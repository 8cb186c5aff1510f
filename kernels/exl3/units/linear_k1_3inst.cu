// linear at 1 bits, codebook 3inst.
#include "exl3/linear.cuh"

template struct exl3::Linear<1, exl3::Codebook::inst3>;
