// decode at 4 bits, codebook mul1.
#include "exl3/decode.cuh"

template struct exl3::Decode<4, exl3::Codebook::mul1>;
