// decode at 4 bits, codebook 3inst.
#include "exl3/decode.cuh"

template struct exl3::Decode<4, exl3::Codebook::inst3>;
