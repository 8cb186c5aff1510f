// linear at 1 bits, codebook mul1.
#include "exl3/linear.cuh"

template struct exl3::Linear<1, exl3::Codebook::mul1>;
