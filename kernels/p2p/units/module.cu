// The module's table: who it is and what it offers. The only unit that uses REQUAL_MODULE_NAME.
#include "p2p/entry.h"

#ifndef REQUAL_MODULE_NAME
#error "REQUAL_MODULE_NAME names the module, such as -DREQUAL_MODULE_NAME=requal_p2p"
#endif
#define REQUAL_QUOTE(identifier) #identifier
#define REQUAL_QUOTED(name) REQUAL_QUOTE(name)

namespace p2p {
namespace {

char const* accumulation() {
  return "fp32";
}

constexpr RequalP2pV1 entries = {sizeof(RequalP2pV1), 0, push, finish, push_code};

constexpr RequalModuleV1 module = {
    REQUAL_ABI_VERSION, sizeof(RequalModuleV1), REQUAL_QUOTED(REQUAL_MODULE_NAME), accumulation,
    nullptr,            &entries,
};

}  // namespace
}  // namespace p2p

// The one exported symbol. Needs no context and no device; the table lives as long as the module.
extern "C" __attribute__((visibility("default"))) RequalModuleV1 const* requal_module_v1(void) {
  return &p2p::module;
}
