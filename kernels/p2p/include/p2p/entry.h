// What the units of this tree offer each other.
#pragma once

#include <cstdint>

#include "requal/module.h"

namespace p2p {

std::int32_t push(RequalExchangeV1 const* call, void* stream);
std::int32_t finish(RequalExchangeV1 const* call, void* stream);
std::int32_t push_code(RequalCodeV1* code);

}  // namespace p2p
