// linear at 2 bits, codebook mcg.
#include "exl3/linear.cuh"

template struct exl3::Linear<2, exl3::Codebook::mcg>;
