// linear at 6 bits, codebook mcg.
#include "exl3/linear.cuh"

template struct exl3::Linear<6, exl3::Codebook::mcg>;
