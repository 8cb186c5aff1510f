// How products are accumulated. The one header that decides it; only linear units include it.
//
// Here: fp16 accumulators in the tensor core over 32 values of k, folded into fp32. A sum over 32 products
// beyond 65504 overflows to infinity; the fp32 variant of this header has no such limit.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

namespace exl3 {

constexpr char const* accumulation_name = "fp16-fold32";

// A 16x8 tile of sums in the C order of mma.m16n8k16: a lane holds rows lane/4 and lane/4 + 8, columns
// 2*(lane%4) and 2*(lane%4) + 1.
struct Accumulator {
  float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};

  // Adds the product over 32 values of k: two MMA steps, step s with A fragment a[s], B fragment b[s].
  __device__ __forceinline__ void add(std::uint32_t const (&a)[2][4], std::uint32_t const (&b)[2][2]) {
    std::uint32_t c[2] = {0u, 0u};
#pragma unroll
    for (int s = 0; s < 2; ++s) {
      asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"
          : "+r"(c[0]), "+r"(c[1])
          : "r"(a[s][0]), "r"(a[s][1]), "r"(a[s][2]), "r"(a[s][3]), "r"(b[s][0]), "r"(b[s][1]));
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      __half2_raw raw;
      raw.x = static_cast<unsigned short>(c[half] & 0xffffu);
      raw.y = static_cast<unsigned short>(c[half] >> 16);
      float2 const pair = __half22float2(__half2(raw));
      sum[2 * half] += pair.x;
      sum[2 * half + 1] += pair.y;
    }
  }
};

}  // namespace exl3
