// The orthonormal 128-point Hadamard transform, one warp a block of 128 values.
#pragma once

#include <cuda_fp16.h>

namespace exl3 {

// Four values of one lane, elements 4*lane to 4*lane + 3 of the block.
struct alignas(8) Half4 {
  __half2 low;
  __half2 high;
};

// Sylvester order: H[i][j] = (-1)^popcount(i & j) / sqrt(128). All 32 lanes take part. fp32 butterfly; the
// scale comes last, so finite input overflows only beyond 2^121.
__device__ __forceinline__ void hadamard_128(float (&v)[4]) {
  float const a = v[0] + v[1];
  float const b = v[0] - v[1];
  float const c = v[2] + v[3];
  float const d = v[2] - v[3];
  v[0] = a + c;
  v[1] = b + d;
  v[2] = a - c;
  v[3] = b - d;
  unsigned const lane = threadIdx.x % 32;
#pragma unroll
  for (unsigned step = 1; step < 32; step *= 2) {
    float const sign = (lane & step) != 0 ? -1.0f : 1.0f;
#pragma unroll
    for (float& value : v) {
      // Multiplying by a sign is exact, so contraction into a fused multiply-add changes nothing.
      value = __shfl_xor_sync(0xffffffffu, value, static_cast<int>(step)) + sign * value;
    }
  }
#pragma unroll
  for (float& value : v) {
    value *= 0.08838834764831845f;
  }
}

}  // namespace exl3
