// decode at 2 bits, codebook 3inst.
#include "exl3/decode.cuh"

template struct exl3::Decode<2, exl3::Codebook::inst3>;
