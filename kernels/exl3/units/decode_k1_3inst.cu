// decode at 1 bits, codebook 3inst.
#include "exl3/decode.cuh"

template struct exl3::Decode<1, exl3::Codebook::inst3>;
