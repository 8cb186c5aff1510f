// linear at 4 bits, codebook 3inst.
#include "exl3/linear.cuh"

template struct exl3::Linear<4, exl3::Codebook::inst3>;
