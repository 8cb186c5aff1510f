// How products are accumulated. The one header that decides it; only linear units include it.
//
// Here: fp32 accumulators in the tensor core throughout.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

namespace exl3 {

constexpr char const* accumulation_name = "fp32";

// A 16x8 tile of sums in the C order of mma.m16n8k16: a lane holds rows lane/4 and lane/4 + 8, columns
// 2*(lane%4) and 2*(lane%4) + 1.
struct Accumulator {
  float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};

  // Adds the product over 32 values of k: two MMA steps, step s with A fragment a[s], B fragment b[s].
  __device__ __forceinline__ void add(std::uint32_t const (&a)[2][4], std::uint32_t const (&b)[2][2]) {
#pragma unroll
    for (int s = 0; s < 2; ++s) {
      asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
          "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
          : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
          : "r"(a[s][0]), "r"(a[s][1]), "r"(a[s][2]), "r"(a[s][3]), "r"(b[s][0]), "r"(b[s][1]));
    }
  }
};

}  // namespace exl3
