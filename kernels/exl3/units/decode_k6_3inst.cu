// decode at 6 bits, codebook 3inst.
#include "exl3/decode.cuh"

template struct exl3::Decode<6, exl3::Codebook::inst3>;
