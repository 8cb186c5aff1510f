// Host side of an entry: argument checks, launch, and the report on what code runs.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "requal/module.h"

namespace exl3 {

inline bool aligned(void const* pointer, std::uintptr_t bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

// Launches without dynamic shared memory; returns the launch's own error, not an earlier one.
template <typename... Params, typename... Args>
std::int32_t launch(void (*kernel)(Params...), dim3 grid, dim3 block, void* stream, Args... args) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.stream = static_cast<cudaStream_t>(stream);
  return static_cast<std::int32_t>(cudaLaunchKernelEx(&config, kernel, args...));
}

// Fills `code` for one kernel; loads it, so it needs a context.
template <typename... Params>
std::int32_t describe(void (*kernel)(Params...), RequalCodeV1* code) {
  if (code == nullptr) {
    return REQUAL_NULL_POINTER;
  }
  cudaFuncAttributes found{};
  cudaError_t const error = cudaFuncGetAttributes(&found, reinterpret_cast<void const*>(kernel));
  if (error == cudaSuccess) {
    *code = {found.binaryVersion, found.ptxVersion, found.numRegs,
             static_cast<std::int32_t>(found.localSizeBytes),
             static_cast<std::int32_t>(found.sharedSizeBytes)};
  }
  return static_cast<std::int32_t>(error);
}

}  // namespace exl3
