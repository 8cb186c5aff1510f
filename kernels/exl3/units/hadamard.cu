// The 128-point Hadamard transform as an entry, and the two ends of linear that need it.
#include "exl3/hadamard.cuh"

#include "exl3/launch.cuh"
#include "exl3/entry.h"

namespace exl3 {
namespace {

constexpr std::uint32_t most_blocks = 65535;

__device__ __forceinline__ void store(Half4* out, std::size_t at, float const (&v)[4], Half4 svh) {
  __half2 const low = __hmul2(__floats2half2_rn(v[0], v[1]), svh.low);
  __half2 const high = __hmul2(__floats2half2_rn(v[2], v[3]), svh.high);
  out[at] = Half4{low, high};
}

__device__ __forceinline__ void store(float4* out, std::size_t at, float const (&v)[4], Half4 svh) {
  float2 const low = __half22float2(svh.low);
  float2 const high = __half22float2(svh.high);
  out[at] = make_float4(v[0] * low.x, v[1] * low.y, v[2] * high.x, v[3] * high.y);
}

// Contract
//   in            in fp16 [rows][columns], scale fp16 [columns] or null, contiguous, 8-byte aligned
//   out           out fp16 [rows][columns], contiguous, 8-byte aligned; may be `in`; every element is written
//   shapes        rows 1 to 65535, columns a multiple of 128
//   launch        grid (columns/128, rows), block 32, no shared memory, no workspace
//   architecture  any from sm_70
//   rounding      in * scale to fp16, butterfly and 1/sqrt(128) in fp32, result to fp16
//   determinism   the same bits on every card
//   reference     worker/src/oracle/hadamard.rs
__global__ void __launch_bounds__(32)
    hadamard_kernel(Half4 const* in, Half4 const* __restrict__ scale, Half4* out) {
  std::size_t const at = (std::size_t{blockIdx.y} * gridDim.x + blockIdx.x) * 32 + threadIdx.x;
  Half4 value = in[at];
  if (scale != nullptr) {
    Half4 const factor = scale[blockIdx.x * 32 + threadIdx.x];
    value.low = __hmul2(value.low, factor.low);
    value.high = __hmul2(value.high, factor.high);
  }
  float2 const low = __half22float2(value.low);
  float2 const high = __half22float2(value.high);
  float v[4] = {low.x, low.y, high.x, high.y};
  hadamard_128(v);
  out[at] = Half4{__floats2half2_rn(v[0], v[1]), __floats2half2_rn(v[2], v[3])};
}

// Contract: the end of linear, whose contract is in exl3/linear.cuh
//   in            partial fp32 [slices][m][n], svh fp16 [n]
//   out           y [m][n] in groups of four elements (Half4 or float4)
//   launch        grid (n/128, m), block 32, no shared memory
//   determinism   slices are added in ascending order in fp32
template <typename Four>
__global__ void __launch_bounds__(32)
    finish_kernel(float4 const* __restrict__ partial, Half4 const* __restrict__ svh,
                  Four* __restrict__ y, std::uint32_t slices) {
  std::size_t const at = (std::size_t{blockIdx.y} * gridDim.x + blockIdx.x) * 32 + threadIdx.x;
  std::size_t const stride = std::size_t{gridDim.x} * gridDim.y * 32;
  float v[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  for (std::uint32_t slice = 0; slice < slices; ++slice) {
    float4 const part = partial[slice * stride + at];
    v[0] += part.x;
    v[1] += part.y;
    v[2] += part.z;
    v[3] += part.w;
  }
  hadamard_128(v);
  store(y, at, v, svh[blockIdx.x * 32 + threadIdx.x]);
}

bool blocks_of_128(std::uint32_t size) {
  return size != 0 && size % 128 == 0 && size / 128 <= most_blocks;
}

}  // namespace

std::int32_t hadamard(RequalHadamardV1 const* call, void* stream) {
  if (call == nullptr || call->in == nullptr || call->out == nullptr) {
    return REQUAL_NULL_POINTER;
  }
  if (!blocks_of_128(call->columns) || call->rows == 0 || call->rows > most_blocks) {
    return REQUAL_BAD_SHAPE;
  }
  if (!aligned(call->in, 8) || !aligned(call->scale, 8) || !aligned(call->out, 8)) {
    return REQUAL_BAD_ALIGNMENT;
  }
  return launch(hadamard_kernel, dim3(call->columns / 128, call->rows), dim3(32), stream,
                static_cast<Half4 const*>(call->in), static_cast<Half4 const*>(call->scale),
                static_cast<Half4*>(call->out));
}

std::int32_t hadamard_code(RequalCodeV1* code) {
  return describe(hadamard_kernel, code);
}

std::uint64_t linear_workspace_bytes(std::uint32_t m, std::uint32_t k, std::uint32_t n) {
  if (m == 0 || m > 32 || !blocks_of_128(k) || !blocks_of_128(n)) {
    return 0;
  }
  return rotated_bytes(m, k) + std::uint64_t{k_slices(k, n)} * m * n * sizeof(float);
}

std::int32_t finish_linear(RequalLinearV1 const& call, float const* partial, std::uint32_t slices,
                           void* stream) {
  dim3 const grid(call.n / 128, call.m);
  float4 const* const sums = reinterpret_cast<float4 const*>(partial);
  Half4 const* const svh = static_cast<Half4 const*>(call.svh);
  if (call.y_type == REQUAL_FP16) {
    return launch(finish_kernel<Half4>, grid, dim3(32), stream, sums, svh, static_cast<Half4*>(call.y),
                  slices);
  }
  return launch(finish_kernel<float4>, grid, dim3(32), stream, sums, svh, static_cast<float4*>(call.y),
                slices);
}

}  // namespace exl3
