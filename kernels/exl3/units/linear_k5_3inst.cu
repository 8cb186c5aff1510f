// linear at 5 bits, codebook 3inst.
#include "exl3/linear.cuh"

template struct exl3::Linear<5, exl3::Codebook::inst3>;
