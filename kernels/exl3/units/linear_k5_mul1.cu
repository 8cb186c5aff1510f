// linear at 5 bits, codebook mul1.
#include "exl3/linear.cuh"

template struct exl3::Linear<5, exl3::Codebook::mul1>;
