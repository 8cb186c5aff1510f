// decode at 1 bits, codebook mul1.
#include "exl3/decode.cuh"

template struct exl3::Decode<1, exl3::Codebook::mul1>;
