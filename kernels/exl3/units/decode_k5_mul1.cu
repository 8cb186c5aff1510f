// decode at 5 bits, codebook mul1.
#include "exl3/decode.cuh"

template struct exl3::Decode<5, exl3::Codebook::mul1>;
