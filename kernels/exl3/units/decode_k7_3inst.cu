// decode at 7 bits, codebook 3inst.
#include "exl3/decode.cuh"

template struct exl3::Decode<7, exl3::Codebook::inst3>;
