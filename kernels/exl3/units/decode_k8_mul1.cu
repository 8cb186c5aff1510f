// decode at 8 bits, codebook mul1.
#include "exl3/decode.cuh"

template struct exl3::Decode<8, exl3::Codebook::mul1>;
