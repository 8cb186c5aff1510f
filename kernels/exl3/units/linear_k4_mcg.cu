// linear at 4 bits, codebook mcg.
#include "exl3/linear.cuh"

template struct exl3::Linear<4, exl3::Codebook::mcg>;
