// decode at 8 bits, codebook 3inst.
#include "exl3/decode.cuh"

template struct exl3::Decode<8, exl3::Codebook::inst3>;
