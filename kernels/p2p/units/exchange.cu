// The exchange: two ranks each give a summand and each get rank 0's + rank 1's, the same bits on both.
//
// One exchange is push, then finish, on one stream a rank, and ranks alternate the two strictly. Then two
// inbox halves are enough: a rank pushes epoch e+2 only after its finish of e+1, which saw the peer's push of
// e+1, which the peer made after its own finish of e, the last reader of that half.
//
// finish alone waits, with one thread and a limit, and no push waits for anything. So one card can run both
// ranks, on one stream (push, push, finish, finish) or on two, whatever the order in which kernels run.
#include <cuda_runtime.h>

#include "p2p/entry.h"

namespace p2p {
namespace {

constexpr unsigned block_threads = 256;
constexpr unsigned most_blocks = 1024;

__device__ __forceinline__ std::uint32_t load_acquire(std::uint32_t const* at) {
  std::uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  return value;
}

__device__ __forceinline__ void store_release(std::uint32_t* at, std::uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" : : "l"(at), "r"(value) : "memory");
}

__device__ __forceinline__ std::uint64_t now_ns() {
  std::uint64_t value;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
  return value;
}

// Contract: push, first of two launches
//   in            partial fp32 [count], 4-byte aligned
//   out           half (epoch+1)%2 of peer_inbox fp32 [2][count]; nothing once error is set
//   launch        grid min(ceil(count/256), 1024), block 256, no shared memory
//   architecture  from sm_70 (system-scope fence)
__global__ void __launch_bounds__(block_threads) push_kernel(RequalExchangeV1 call) {
  if (*call.error != REQUAL_EXCHANGE_OK) {
    return;
  }
  std::uint32_t const half = (*call.epoch + 1) % 2;
  float* const inbox = call.peer_inbox + std::size_t{half} * call.count;
  for (std::size_t i = std::size_t{blockIdx.x} * block_threads + threadIdx.x; i < call.count;
       i += std::size_t{gridDim.x} * block_threads) {
    inbox[i] = call.partial[i];
  }
  __threadfence_system();
}

// Contract: push, second launch
//   out           epoch + 1 on this rank; then the same number in peer_flag, by a system-scope release
//   launch        grid 1, block 1. Stream order puts it after every store of push_kernel
__global__ void release_kernel(RequalExchangeV1 call) {
  if (*call.error != REQUAL_EXCHANGE_OK) {
    return;
  }
  std::uint32_t const epoch = *call.epoch + 1;
  *call.epoch = epoch;
  __threadfence_system();
  store_release(call.peer_flag, epoch);
}

// Contract: finish, first of two launches
//   in            flag, by system-scope acquire, until it has reached epoch (differences wrap at 2^32)
//   out           error = REQUAL_EXCHANGE_TIMEOUT after timeout_ns; never cleared here
//   launch        grid 1, block 1
__global__ void wait_kernel(RequalExchangeV1 call) {
  if (*call.error != REQUAL_EXCHANGE_OK) {
    return;
  }
  std::uint32_t const epoch = *call.epoch;
  std::uint64_t const start = now_ns();
  while (static_cast<std::int32_t>(load_acquire(call.flag) - epoch) < 0) {
    if (now_ns() - start > call.timeout_ns) {
      *call.error = REQUAL_EXCHANGE_TIMEOUT;
      return;
    }
  }
}

// Contract: finish, second launch
//   in            partial fp32 [count]; half epoch%2 of inbox fp32 [2][count]
//   out           out fp32 [count] = rank 0's + rank 1's, one fp32 addition; NaN once error is set
//   launch        grid min(ceil(count/256), 1024), block 256, no shared memory
//   determinism   the same bits on both ranks and at every run
//   reference     worker/src/gpu/exchange.rs
__global__ void __launch_bounds__(block_threads) add_kernel(RequalExchangeV1 call) {
  bool const failed = *call.error != REQUAL_EXCHANGE_OK;
  float const* const inbox = call.inbox + std::size_t{*call.epoch % 2} * call.count;
  for (std::size_t i = std::size_t{blockIdx.x} * block_threads + threadIdx.x; i < call.count;
       i += std::size_t{gridDim.x} * block_threads) {
    float const own = call.partial[i];
    float const peer = inbox[i];
    float const sum = call.rank == 0 ? own + peer : peer + own;
    call.out[i] = failed ? __int_as_float(0x7fffffff) : sum;
  }
}

bool aligned4(void const* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % 4 == 0;
}

std::int32_t check(RequalExchangeV1 const* call) {
  if (call == nullptr || call->partial == nullptr || call->out == nullptr || call->inbox == nullptr ||
      call->peer_inbox == nullptr || call->flag == nullptr || call->peer_flag == nullptr ||
      call->epoch == nullptr || call->error == nullptr) {
    return REQUAL_NULL_POINTER;
  }
  if (call->count == 0 || call->rank > 1 || call->timeout_ns == 0) {
    return REQUAL_BAD_SHAPE;
  }
  bool const good = aligned4(call->partial) && aligned4(call->out) && aligned4(call->inbox) &&
                    aligned4(call->peer_inbox) && aligned4(call->flag) && aligned4(call->peer_flag) &&
                    aligned4(call->epoch) && aligned4(call->error);
  return good ? REQUAL_OK : REQUAL_BAD_ALIGNMENT;
}

std::int32_t launch(void (*kernel)(RequalExchangeV1), unsigned blocks, unsigned threads,
                    RequalExchangeV1 const& call, void* stream) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.stream = static_cast<cudaStream_t>(stream);
  return static_cast<std::int32_t>(cudaLaunchKernelEx(&config, kernel, call));
}

unsigned blocks_for(std::uint32_t count) {
  unsigned const blocks = (count - 1) / block_threads + 1;
  return blocks < most_blocks ? blocks : most_blocks;
}

}  // namespace

std::int32_t push(RequalExchangeV1 const* call, void* stream) {
  std::int32_t status = check(call);
  if (status == REQUAL_OK) {
    status = launch(push_kernel, blocks_for(call->count), block_threads, *call, stream);
  }
  return status == REQUAL_OK ? launch(release_kernel, 1, 1, *call, stream) : status;
}

std::int32_t finish(RequalExchangeV1 const* call, void* stream) {
  std::int32_t status = check(call);
  if (status == REQUAL_OK) {
    status = launch(wait_kernel, 1, 1, *call, stream);
  }
  return status == REQUAL_OK ? launch(add_kernel, blocks_for(call->count), block_threads, *call, stream)
                             : status;
}

std::int32_t push_code(RequalCodeV1* code) {
  if (code == nullptr) {
    return REQUAL_NULL_POINTER;
  }
  cudaFuncAttributes found{};
  cudaError_t const error = cudaFuncGetAttributes(&found, reinterpret_cast<void const*>(push_kernel));
  if (error == cudaSuccess) {
    *code = {found.binaryVersion, found.ptxVersion, found.numRegs,
             static_cast<std::int32_t>(found.localSizeBytes),
             static_cast<std::int32_t>(found.sharedSizeBytes)};
  }
  return static_cast<std::int32_t>(error);
}

}  // namespace p2p
