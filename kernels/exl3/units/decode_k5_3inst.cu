// decode at 5 bits, codebook 3inst.
#include "exl3/decode.cuh"

template struct exl3::Decode<5, exl3::Codebook::inst3>;
