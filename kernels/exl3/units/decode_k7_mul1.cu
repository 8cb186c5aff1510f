// decode at 7 bits, codebook mul1.
#include "exl3/decode.cuh"

template struct exl3::Decode<7, exl3::Codebook::mul1>;
