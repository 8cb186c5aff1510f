// What the units of this tree offer each other: one class a family, instantiated once a unit.
#pragma once

#include <cstdint>

#include "requal/module.h"

namespace exl3 {

enum class Codebook : std::uint32_t { inst3 = REQUAL_3INST, mcg = REQUAL_MCG, mul1 = REQUAL_MUL1 };

// Units decode_k*_*.cu.
template <int bits, Codebook codebook>
struct Decode {
  static std::int32_t launch(RequalDecodeV1 const* call, void* stream);
  static std::int32_t code(RequalCodeV1* code);
};

// Units linear_k*_*.cu. Only these know how products are accumulated.
template <int bits, Codebook codebook>
struct Linear {
  static std::int32_t launch(RequalLinearV1 const* call, void* stream);
  static std::int32_t code(RequalCodeV1* code);
  static char const* accumulation();
};

// Unit hadamard.cu.
std::int32_t hadamard(RequalHadamardV1 const* call, void* stream);
std::int32_t hadamard_code(RequalCodeV1* code);
std::uint64_t linear_workspace_bytes(std::uint32_t m, std::uint32_t k, std::uint32_t n);

// y = H_n(sum of the slices' partial sums) * svh; partial: fp32 [slices][m][n].
std::int32_t finish_linear(RequalLinearV1 const& call, float const* partial, std::uint32_t slices,
                           void* stream);

// How many blocks share the k dimension of one linear. From the shape alone, so that a sum's order never
// depends on the card: enough blocks for a large card, each with at least 128 values of k.
inline std::uint32_t k_slices(std::uint32_t k, std::uint32_t n) {
  std::uint32_t const wanted = 256 / (n / 128) + 1;
  std::uint32_t const most = k / 128;
  return wanted < most ? wanted : most;
}

// Workspace of one linear: the rotated input, then the partial sums.
inline std::uint64_t rotated_bytes(std::uint32_t m, std::uint32_t k) {
  return std::uint64_t{m} * k * 2;
}

}  // namespace exl3
