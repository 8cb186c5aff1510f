// decode at 2 bits, codebook mul1.
#include "exl3/decode.cuh"

template struct exl3::Decode<2, exl3::Codebook::mul1>;
