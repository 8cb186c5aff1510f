// decode at 3 bits, codebook mul1.
#include "exl3/decode.cuh"

template struct exl3::Decode<3, exl3::Codebook::mul1>;
