// decode at 6 bits, codebook mcg.
#include "exl3/decode.cuh"

template struct exl3::Decode<6, exl3::Codebook::mcg>;
