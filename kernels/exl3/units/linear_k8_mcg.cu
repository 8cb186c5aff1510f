// linear at 8 bits, codebook mcg.
#include "exl3/linear.cuh"

template struct exl3::Linear<8, exl3::Codebook::mcg>;
