// linear at 4 bits, codebook mul1.
#include "exl3/linear.cuh"

template struct exl3::Linear<4, exl3::Codebook::mul1>;
