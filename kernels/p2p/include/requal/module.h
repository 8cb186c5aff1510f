// The versioned C table that each module exports, and the records its entries take.
//
// Plain C without CUDA types, so that any loader can mirror it; worker/src/module/abi.rs does. A stream is a
// cudaStream_t (the driver's CUstream), and every data pointer is a device pointer, unless said otherwise.
// kernels/exl3 and kernels/p2p each hold this file, byte for byte the same.
#pragma once

#include <stdint.h>

#define REQUAL_ABI_VERSION 1u

// What an entry returns: 0, one of these, or a positive cudaError_t from the launch.
enum RequalStatus {
  REQUAL_OK = 0,
  REQUAL_NULL_POINTER = -1,      // a pointer that the entry needs is null
  REQUAL_BAD_SHAPE = -2,         // a size outside the entry's contract
  REQUAL_BAD_ALIGNMENT = -3,     // a pointer aligned to less than its contract says
  REQUAL_SMALL_WORKSPACE = -4,   // workspace_bytes below what the workspace query gives
  REQUAL_BAD_TYPE = -5           // an element type that the entry does not know
};

enum RequalCodebook { REQUAL_3INST = 0, REQUAL_MCG = 1, REQUAL_MUL1 = 2 };
enum RequalType { REQUAL_FP16 = 0, REQUAL_FP32 = 1 };

// What the driver runs for one kernel: an architecture is 10 * major + minor. binary_arch is the machine
// code's, ptx_arch that of the PTX it came from; they differ where the driver compiled the PTX.
typedef struct RequalCodeV1 {
  int32_t binary_arch;
  int32_t ptx_arch;
  int32_t registers;
  int32_t local_bytes;
  int32_t shared_bytes;
} RequalCodeV1;

// decode: weights of one matrix. k and n are multiples of 16.
typedef struct RequalDecodeV1 {
  const void* trellis;  // int16 [k/16][n/16][16*bits], contiguous, 4-byte aligned
  void* weights;        // out: fp16 [k][n], contiguous, 2-byte aligned
  uint32_t k;
  uint32_t n;
} RequalDecodeV1;

// hadamard: out = fp16(H(fp16(in * scale))), H block-diagonal. columns is a multiple of 128.
typedef struct RequalHadamardV1 {
  const void* in;     // fp16 [rows][columns], contiguous, 8-byte aligned
  const void* scale;  // fp16 [columns], 8-byte aligned, or null for 1
  void* out;          // out: fp16 [rows][columns], contiguous, 8-byte aligned; may be `in`
  uint32_t rows;      // 1 to 65535
  uint32_t columns;
} RequalHadamardV1;

// linear: y = (H_n(H_k(x * suh) W)) * svh. k and n are multiples of 128.
typedef struct RequalLinearV1 {
  const void* x;        // fp16 [m][k], contiguous, 8-byte aligned
  const void* trellis;  // int16 [k/16][n/16][16*bits], contiguous, 4-byte aligned
  const void* suh;      // fp16 [k], 8-byte aligned
  const void* svh;      // fp16 [n], 8-byte aligned
  void* y;              // out: [m][n] of y_type, contiguous, aligned to four elements
  void* workspace;      // 16-byte aligned; content before and after has no meaning
  uint64_t workspace_bytes;
  uint32_t m;  // 1 to 32
  uint32_t k;
  uint32_t n;
  uint32_t y_type;  // RequalType
} RequalLinearV1;

// exchange: what one rank passes to push and to finish. A rank's epoch, flag and error start at 0.
typedef struct RequalExchangeV1 {
  const float* partial;  // [count], this rank's summand
  float* out;            // out: [count], rank 0's summand + rank 1's
  const float* inbox;    // [2][count] on this rank, written by the peer
  float* peer_inbox;     // [2][count] on the peer
  const uint32_t* flag;  // on this rank: the last epoch that the peer has pushed
  uint32_t* peer_flag;   // on the peer: the last epoch that this rank has pushed
  uint32_t* epoch;       // on this rank, bumped by push on the device
  uint32_t* error;       // on this rank, sticky: RequalExchangeError
  uint64_t timeout_ns;   // how long finish waits for the peer, at least 1
  uint32_t count;        // at least 1
  uint32_t rank;         // 0 or 1
} RequalExchangeV1;

enum RequalExchangeError { REQUAL_EXCHANGE_OK = 0, REQUAL_EXCHANGE_TIMEOUT = 1 };

typedef int32_t (*RequalDecodeFn)(const RequalDecodeV1* call, void* stream);
typedef int32_t (*RequalHadamardFn)(const RequalHadamardV1* call, void* stream);
typedef int32_t (*RequalLinearFn)(const RequalLinearV1* call, void* stream);
typedef int32_t (*RequalExchangeFn)(const RequalExchangeV1* call, void* stream);
typedef int32_t (*RequalCodeFn)(RequalCodeV1* code);  // needs a context
typedef const char* (*RequalNameFn)(void);

// One (bits, codebook) instance.
typedef struct RequalExl3RowV1 {
  uint32_t bits;             // 1 to 8
  uint32_t codebook;         // RequalCodebook
  RequalDecodeFn decode;
  RequalCodeFn decode_code;
  RequalLinearFn linear;
  RequalCodeFn linear_code;
  RequalNameFn accumulation;  // of this row's linear unit
} RequalExl3RowV1;

typedef struct RequalExl3V1 {
  uint32_t struct_bytes;
  uint32_t row_count;
  const RequalExl3RowV1* rows;  // [row_count], codebook by codebook, bits ascending
  RequalHadamardFn hadamard;
  RequalCodeFn hadamard_code;
  uint64_t (*linear_workspace_bytes)(uint32_t m, uint32_t k, uint32_t n);  // 0: shape refused
} RequalExl3V1;

typedef struct RequalP2pV1 {
  uint32_t struct_bytes;
  uint32_t reserved;
  RequalExchangeFn push;
  RequalExchangeFn finish;
  RequalCodeFn push_code;
} RequalP2pV1;

typedef struct RequalModuleV1 {
  uint32_t abi_version;       // REQUAL_ABI_VERSION
  uint32_t struct_bytes;      // sizeof(RequalModuleV1)
  const char* name;           // the marker: which module this is
  RequalNameFn accumulation;  // "fp16-fold32", "fp32", or "mixed" if the units disagree
  const RequalExl3V1* exl3;   // null in other modules
  const RequalP2pV1* p2p;     // null in other modules
} RequalModuleV1;
