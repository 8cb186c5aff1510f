// linear at 8 bits, codebook mul1.
#include "exl3/linear.cuh"

template struct exl3::Linear<8, exl3::Codebook::mul1>;
