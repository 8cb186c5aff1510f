// linear at 3 bits, codebook mul1.
#include "exl3/linear.cuh"

template struct exl3::Linear<3, exl3::Codebook::mul1>;
