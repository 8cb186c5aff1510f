// linear at 7 bits, codebook 3inst.
#include "exl3/linear.cuh"

template struct exl3::Linear<7, exl3::Codebook::inst3>;
