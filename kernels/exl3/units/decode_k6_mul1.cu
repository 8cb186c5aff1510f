// decode at 6 bits, codebook mul1.
#include "exl3/decode.cuh"

template struct exl3::Decode<6, exl3::Codebook::mul1>;
