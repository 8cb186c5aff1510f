// decode at 3 bits, codebook mcg.
#include "exl3/decode.cuh"

template struct exl3::Decode<3, exl3::Codebook::mcg>;
