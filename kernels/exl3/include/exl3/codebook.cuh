// The trellis: from packed bits to 16-bit states, and from a state to its fp16 weight.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "exl3/entry.h"

namespace exl3 {

// A tile holds 256 weights of a 16x16 block as 8*bits words; symbols are packed from a word's top bit down.
template <int bits>
constexpr int words_per_tile = 8 * bits;

// State of weight t: the 16 bits that end at bit (t+1)*bits of the tile's ring of 256*bits bits.
template <int bits>
__device__ __forceinline__ std::uint32_t state_of(std::uint32_t const* __restrict__ tile, int t) {
  int const end = (t + 1) * bits;
  int const last = (end - 1) / 32;
  int const first = (end - 16 + 256 * bits) / 32 % words_per_tile<bits>;
  return __funnelshift_r(tile[last], tile[first], 32 * (last + 1) - end) & 0xffffu;
}

// 3inst and mcg: a multiplicative hash, of which two fp16 numbers are made and added with one rounding.
__device__ __forceinline__ __half sum_of_halves(std::uint32_t hash) {
  std::uint32_t const pair = (hash & 0x8fff8fffu) ^ 0x3b603b60u;
  return __hadd(__ushort_as_half(static_cast<unsigned short>(pair & 0xffffu)),
                __ushort_as_half(static_cast<unsigned short>(pair >> 16)));
}

template <Codebook codebook>
__device__ __forceinline__ __half weight_of(std::uint32_t state) {
  if constexpr (codebook == Codebook::inst3) {
    return sum_of_halves(state * 89226354u + 64248484u);
  } else if constexpr (codebook == Codebook::mcg) {
    return sum_of_halves(state * 0xcbac1fedu);
  } else {
    // The hash's byte sum s as the exact fp16 number 1024 + s, then one fused multiply-add.
    std::uint32_t const sum = __dp4a(state * 0x83dcd12du, 0x01010101u, 0u);
    return __hfma(__ushort_as_half(static_cast<unsigned short>(0x6400u + sum)),
                  __ushort_as_half(0x1eee), __ushort_as_half(0xc931));
  }
}

// The eight weights of one lane, t = 8*lane + j. Tile order is the B operand's order of mma.m16n8k16:
// weight j lies in row 2*(lane%4) + {0,1,8,9}[j%4] and column lane/4 + (j < 4 ? 0 : 8), so pair p = j/2 is
// register p%2 of the B fragment for columns 8*(p/2) to 8*(p/2)+7.
template <int bits, Codebook codebook>
__device__ __forceinline__ void decode_lane(std::uint32_t const* __restrict__ tile, int lane,
                                            __half2 (&pairs)[4]) {
#pragma unroll
  for (int p = 0; p < 4; ++p) {
    int const t = 8 * lane + 2 * p;
    pairs[p] = __halves2half2(weight_of<codebook>(state_of<bits>(tile, t)),
                              weight_of<codebook>(state_of<bits>(tile, t + 1)));
  }
}

}  // namespace exl3
