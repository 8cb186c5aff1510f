// decode: the fp16 weights of a trellis, as a plain matrix.
#pragma once

#include "exl3/codebook.cuh"
#include "exl3/launch.cuh"

namespace exl3 {

constexpr int decode_warps = 8;

// Contract
//   in            trellis int16 [k/16][n/16][16*bits], contiguous, 4-byte aligned
//   out           weights fp16 [k][n], contiguous, 2-byte aligned; every element is written
//   shapes        k, n multiples of 16, k at most 16*65535
//   launch        grid (ceil(n/128), k/16), block 256 (a warp a tile), no shared memory, no workspace
//   architecture  any from sm_70 (half arithmetic, dp4a)
//   arithmetic    integer hash, then one fp16 add (3inst, mcg) or one fp16 fused multiply-add (mul1)
//   determinism   bit-exact, the same bits on every card
//   reference     worker/src/oracle/trellis.rs
template <int bits, Codebook codebook>
__global__ void __launch_bounds__(32 * decode_warps)
    decode_kernel(std::uint32_t const* __restrict__ trellis, __half* __restrict__ weights,
                  std::uint32_t n) {
  std::uint32_t const lane = threadIdx.x % 32;
  std::uint32_t const tile_column = blockIdx.x * decode_warps + threadIdx.x / 32;
  std::uint32_t const tiles = n / 16;
  if (tile_column >= tiles) {
    return;
  }
  std::size_t const tile = std::size_t{blockIdx.y} * tiles + tile_column;
  __half2 pairs[4];
  decode_lane<bits, codebook>(trellis + tile * words_per_tile<bits>, static_cast<int>(lane), pairs);

  std::size_t const row = std::size_t{blockIdx.y} * 16 + 2 * (lane % 4);
  std::size_t const column = std::size_t{tile_column} * 16 + lane / 4;
#pragma unroll
  for (int p = 0; p < 4; ++p) {
    __half* const at = weights + (row + 8 * (p % 2)) * n + column + 8 * (p / 2);
    at[0] = __low2half(pairs[p]);
    at[n] = __high2half(pairs[p]);
  }
}

template <int bits, Codebook codebook>
std::int32_t Decode<bits, codebook>::launch(RequalDecodeV1 const* call, void* stream) {
  if (call == nullptr || call->trellis == nullptr || call->weights == nullptr) {
    return REQUAL_NULL_POINTER;
  }
  if (call->k == 0 || call->n == 0 || call->k % 16 != 0 || call->n % 16 != 0 ||
      call->k / 16 > 65535) {
    return REQUAL_BAD_SHAPE;
  }
  if (!aligned(call->trellis, 4) || !aligned(call->weights, 2)) {
    return REQUAL_BAD_ALIGNMENT;
  }
  dim3 const grid((call->n / 16 + decode_warps - 1) / decode_warps, call->k / 16);
  return exl3::launch(decode_kernel<bits, codebook>, grid, dim3(32 * decode_warps), stream,
                      static_cast<std::uint32_t const*>(call->trellis),
                      static_cast<__half*>(call->weights), call->n);
}

template <int bits, Codebook codebook>
std::int32_t Decode<bits, codebook>::code(RequalCodeV1* code) {
  return describe(decode_kernel<bits, codebook>, code);
}

}  // namespace exl3
