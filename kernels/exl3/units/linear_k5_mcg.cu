// linear at 5 bits, codebook mcg.
#include "exl3/linear.cuh"

template struct exl3::Linear<5, exl3::Codebook::mcg>;
