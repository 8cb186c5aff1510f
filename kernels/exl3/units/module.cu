// The module's table: who it is and what it offers. The only unit that uses REQUAL_MODULE_NAME.
#include <cstring>

#include "exl3/entry.h"

#ifndef REQUAL_MODULE_NAME
#error "REQUAL_MODULE_NAME names the module, such as -DREQUAL_MODULE_NAME=requal_exl3_stock"
#endif
#define REQUAL_QUOTE(identifier) #identifier
#define REQUAL_QUOTED(name) REQUAL_QUOTE(name)

namespace exl3 {
namespace {

template <int bits, Codebook codebook>
constexpr RequalExl3RowV1 row() {
  using D = Decode<bits, codebook>;
  using L = Linear<bits, codebook>;
  return {bits,      static_cast<std::uint32_t>(codebook), D::launch, D::code, L::launch, L::code,
          L::accumulation};
}

constexpr RequalExl3RowV1 rows[] = {
    row<1, Codebook::inst3>(), row<2, Codebook::inst3>(), row<3, Codebook::inst3>(),
    row<4, Codebook::inst3>(), row<5, Codebook::inst3>(), row<6, Codebook::inst3>(),
    row<7, Codebook::inst3>(), row<8, Codebook::inst3>(), row<1, Codebook::mcg>(),
    row<2, Codebook::mcg>(),   row<3, Codebook::mcg>(),   row<4, Codebook::mcg>(),
    row<5, Codebook::mcg>(),   row<6, Codebook::mcg>(),   row<7, Codebook::mcg>(),
    row<8, Codebook::mcg>(),   row<1, Codebook::mul1>(),  row<2, Codebook::mul1>(),
    row<3, Codebook::mul1>(),  row<4, Codebook::mul1>(),  row<5, Codebook::mul1>(),
    row<6, Codebook::mul1>(),  row<7, Codebook::mul1>(),  row<8, Codebook::mul1>(),
};
constexpr std::uint32_t row_count = sizeof(rows) / sizeof(rows[0]);

// The accumulation that all linear units agree on: a linked-in unit of the other tree shows as "mixed".
char const* accumulation() {
  char const* const first = rows[0].accumulation();
  for (RequalExl3RowV1 const& row : rows) {
    if (std::strcmp(row.accumulation(), first) != 0) {
      return "mixed";
    }
  }
  return first;
}

constexpr RequalExl3V1 entries = {
    sizeof(RequalExl3V1), row_count, rows, hadamard, hadamard_code, linear_workspace_bytes,
};

constexpr RequalModuleV1 module = {
    REQUAL_ABI_VERSION, sizeof(RequalModuleV1), REQUAL_QUOTED(REQUAL_MODULE_NAME), accumulation,
    &entries,           nullptr,
};

}  // namespace
}  // namespace exl3

// The one exported symbol. Needs no context and no device; the table lives as long as the module.
extern "C" __attribute__((visibility("default"))) RequalModuleV1 const* requal_module_v1(void) {
  return &exl3::module;
}
