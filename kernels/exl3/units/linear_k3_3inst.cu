// linear at 3 bits, codebook 3inst.
#include "exl3/linear.cuh"

template struct exl3::Linear<3, exl3::Codebook::inst3>;
