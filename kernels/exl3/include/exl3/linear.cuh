// linear: y = (H_n(H_k(x * suh) W)) * svh, with W decoded straight into tensor-core operands.
#pragma once

#include "exl3/accumulate.cuh"
#include "exl3/codebook.cuh"
#include "exl3/launch.cuh"

namespace exl3 {

constexpr int linear_warps = 8;
constexpr std::uint32_t linear_max_rows = 32;

// Two neighbouring values of one row of A, or zeros beyond the last row.
__device__ __forceinline__ std::uint32_t pair_at(__half const* __restrict__ a, std::uint32_t row,
                                                 std::uint32_t m, std::size_t k, std::size_t at) {
  return row < m ? *reinterpret_cast<std::uint32_t const*>(a + row * k + at) : 0u;
}

// The A fragment of mma.m16n8k16 for rows first to first + 15 and values at to at + 15 of k.
__device__ __forceinline__ void load_a(__half const* __restrict__ a, std::uint32_t first,
                                       std::uint32_t m, std::size_t k, std::size_t at,
                                       std::uint32_t lane, std::uint32_t (&fragment)[4]) {
  std::uint32_t const row = first + lane / 4;
  std::size_t const column = at + 2 * (lane % 4);
  fragment[0] = pair_at(a, row, m, k, column);
  fragment[1] = pair_at(a, row + 8, m, k, column);
  fragment[2] = pair_at(a, row, m, k, column + 8);
  fragment[3] = pair_at(a, row + 8, m, k, column + 8);
}

__device__ __forceinline__ void store_pair(float* __restrict__ partial, std::uint32_t row,
                                           std::uint32_t m, std::size_t n, std::size_t column,
                                           float first, float second) {
  if (row < m) {
    *reinterpret_cast<float2*>(partial + row * n + column) = make_float2(first, second);
  }
}

// Contract of the whole entry: three launches, rotate (hadamard.cu), multiply (here), finish (hadamard.cu)
//   in            x fp16 [m][k], suh fp16 [k], svh fp16 [n], 8-byte aligned;
//                 trellis int16 [k/16][n/16][16*bits], 4-byte aligned; all contiguous
//   out           y fp16 or fp32 [m][n], contiguous, aligned to four elements; every element is written
//   workspace     linear_workspace_bytes(m, k, n), 16-byte aligned: rotated x fp16 [m][k], then partial sums
//                 fp32 [slices][m][n]; needs no initial value
//   shapes        m 1 to 32; k, n multiples of 128, each at most 128*65535
//   launch        grid (n/128, k_slices(k, n)), block 256: a warp owns 16 columns and one slice of k;
//                 one template for m <= 16, one for more; no shared memory
//   architecture  from sm_80 (mma.m16n8k16)
//   rounding      x * suh to fp16; butterfly fp32; to fp16 (operand A); products accumulated as
//                 accumulate.cuh says; slices summed in fp32 in ascending order; butterfly fp32;
//                 svh in the output's type
//   range         with fp16 output the butterfly's result must stay within 65504 before svh is applied
//   odd values    a row of x with NaN or infinity gives non-finite values in that row alone
//   determinism   no atomics, launch shape from (k, n) alone: the same bits at every run on one card
//   reference     worker/src/oracle/linear.rs
template <int bits, Codebook codebook, int row_tiles>
__global__ void __launch_bounds__(32 * linear_warps, 2)
    linear_kernel(__half const* __restrict__ a, std::uint32_t const* __restrict__ trellis,
                  float* __restrict__ partial, std::uint32_t m, std::uint32_t k, std::uint32_t n) {
  std::uint32_t const lane = threadIdx.x % 32;
  std::uint32_t const tile_column = blockIdx.x * linear_warps + threadIdx.x / 32;
  std::uint32_t const tiles = n / 16;
  std::size_t const blocks = k / 128;
  std::size_t const begin = blocks * blockIdx.y / gridDim.y * 128;
  std::size_t const end = blocks * (blockIdx.y + 1) / gridDim.y * 128;

  Accumulator sums[row_tiles][2];
  for (std::size_t at = begin; at < end; at += 32) {
    std::uint32_t b[2][2][2];  // [column half][MMA step][register]
#pragma unroll
    for (int s = 0; s < 2; ++s) {
      __half2 pairs[4];
      std::size_t const tile = (at / 16 + s) * tiles + tile_column;
      decode_lane<bits, codebook>(trellis + tile * words_per_tile<bits>, static_cast<int>(lane), pairs);
#pragma unroll
      for (int p = 0; p < 4; ++p) {
        b[p / 2][s][p % 2] = *reinterpret_cast<std::uint32_t const*>(&pairs[p]);
      }
    }
#pragma unroll
    for (int r = 0; r < row_tiles; ++r) {
      std::uint32_t fragment[2][4];
      load_a(a, 16 * r, m, k, at, lane, fragment[0]);
      load_a(a, 16 * r, m, k, at + 16, lane, fragment[1]);
      sums[r][0].add(fragment, b[0]);
      sums[r][1].add(fragment, b[1]);
    }
  }

  float* const slice = partial + std::size_t{blockIdx.y} * m * n;
#pragma unroll
  for (int r = 0; r < row_tiles; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      std::uint32_t const row = 16 * r + lane / 4;
      std::size_t const column = std::size_t{tile_column} * 16 + 8 * half + 2 * (lane % 4);
      float const(&sum)[4] = sums[r][half].sum;
      store_pair(slice, row, m, n, column, sum[0], sum[1]);
      store_pair(slice, row + 8, m, n, column, sum[2], sum[3]);
    }
  }
}

inline std::int32_t check_linear(RequalLinearV1 const* call) {
  if (call == nullptr || call->x == nullptr || call->trellis == nullptr || call->suh == nullptr ||
      call->svh == nullptr || call->y == nullptr || call->workspace == nullptr) {
    return REQUAL_NULL_POINTER;
  }
  std::uint64_t const needed = linear_workspace_bytes(call->m, call->k, call->n);
  if (needed == 0) {
    return REQUAL_BAD_SHAPE;
  }
  if (call->y_type != REQUAL_FP16 && call->y_type != REQUAL_FP32) {
    return REQUAL_BAD_TYPE;
  }
  if (!aligned(call->x, 8) || !aligned(call->trellis, 4) || !aligned(call->suh, 8) ||
      !aligned(call->svh, 8) || !aligned(call->workspace, 16) ||
      !aligned(call->y, call->y_type == REQUAL_FP16 ? 8 : 16)) {
    return REQUAL_BAD_ALIGNMENT;
  }
  return call->workspace_bytes < needed ? REQUAL_SMALL_WORKSPACE : REQUAL_OK;
}

template <int bits, Codebook codebook>
std::int32_t Linear<bits, codebook>::launch(RequalLinearV1 const* call, void* stream) {
  std::int32_t status = check_linear(call);
  if (status != REQUAL_OK) {
    return status;
  }
  __half* const rotated = static_cast<__half*>(call->workspace);
  float* const partial =
      reinterpret_cast<float*>(static_cast<char*>(call->workspace) + rotated_bytes(call->m, call->k));
  RequalHadamardV1 const rotate{call->x, call->suh, rotated, call->m, call->k};
  status = hadamard(&rotate, stream);
  if (status != REQUAL_OK) {
    return status;
  }
  std::uint32_t const slices = k_slices(call->k, call->n);
  auto const kernel =
      call->m <= 16 ? linear_kernel<bits, codebook, 1> : linear_kernel<bits, codebook, 2>;
  status = exl3::launch(kernel, dim3(call->n / 128, slices), dim3(32 * linear_warps), stream,
                        static_cast<__half const*>(rotated),
                        static_cast<std::uint32_t const*>(call->trellis), partial, call->m, call->k,
                        call->n);
  return status == REQUAL_OK ? finish_linear(*call, partial, slices, stream) : status;
}

template <int bits, Codebook codebook>
std::int32_t Linear<bits, codebook>::code(RequalCodeV1* code) {
  return describe(linear_kernel<bits, codebook, 2>, code);
}

template <int bits, Codebook codebook>
char const* Linear<bits, codebook>::accumulation() {
  return accumulation_name;
}

}  // namespace exl3
