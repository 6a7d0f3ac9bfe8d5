#pragma once

#include "exec/cuda/device/mbarrier.cuh"
#include "exec/cuda/device/wgmma_instructions.cuh"
#include "exec/cuda/device/wgmma_wide.cuh"
#include "exec/cuda/device/wgmma_wider.cuh"
#include "exec/cuda/device/wgmma_widest.cuh"

// Matrix multiplications of a warpgroup (wgmma, PTX ISA 9.7.15). They run asynchronously: registers
// of an accumulator may be accessed, and shared memory that they read may be overwritten, only
// after `wait_wgmmas`. All operands lie in swizzled boxes as the bulk copy engine writes them,
// aligned to 1,024 bytes: with rows of 128 bytes, or of 64 in N-major boxes of 32 columns.
namespace harpe::device {

// Needed before the first wgmma after other instructions have written its registers.
HP_DEVICE void begin_wgmmas() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

HP_DEVICE void commit_wgmmas() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until all but the last `Pending` committed groups are done.
template <int Pending>
HP_DEVICE void wait_wgmmas() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

// Keeps the compiler from moving accesses of an accumulator across a wait.
template <int N>
HP_DEVICE void pin(float (&values)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(values[i])::"memory");
}

// `Count` values of an accumulator from `First` on.
template <int First, int Count, int N>
HP_DEVICE float (&part(float (&values)[N]))[Count] {
  static_assert(First + Count <= N);
  return *reinterpret_cast<float(*)[Count]>(&values[First]);
}

// The matrix descriptor: addresses and strides in units of 16 bytes, 128-byte or 64-byte swizzle.
template <int kSwizzle = 128>
HP_DEVICE std::uint64_t descriptor(const void* box, std::uint32_t leading_bytes,
                                   std::uint32_t stride_bytes) {
  static_assert(kSwizzle == 128 || kSwizzle == 64);
  constexpr std::uint64_t kMode = std::uint64_t{kSwizzle == 128 ? 1 : 2} << 62;
  return kMode | (std::uint64_t{stride_bytes >> 4} << 32) |
         (std::uint64_t{leading_bytes >> 4} << 16) | ((shared_address(box) & 0x3FFFF) >> 4);
}

// K-major: a row of the box is 64 values along K. Eight rows are 1,024 bytes.
HP_DEVICE std::uint64_t k_major(const void* box) { return descriptor(box, 16, 1024); }

// N-major: a row of the box is kColumns values along N, swizzled by its bytes; boxes follow each
// other along N every `box_bytes`. Eight values along K are eight rows.
template <int kColumns = 64>
HP_DEVICE std::uint64_t n_major(const void* box, std::uint32_t box_bytes) {
  return descriptor<kColumns * 2>(box, box_bytes, 8 * kColumns * 2);
}

// The descriptor, equal in all lanes of the warp, in uniform registers: steps along K are added
// there, so that wgmmas follow each other without moves in between.
HP_DEVICE std::uint64_t uniform(std::uint64_t descriptor) {
  const auto low = static_cast<std::uint32_t>(descriptor);
  return descriptor >> 32 << 32 | __shfl_sync(0xffffffff, low, 0);
}

// Sixteen values further along K, in units of the descriptor's address; N-major with 64 columns.
inline constexpr std::uint64_t kKMajorStep = 32 >> 4;
inline constexpr std::uint64_t kNMajorStep = 2048 >> 4;

template <int Count>
HP_DEVICE void grow_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count));
}

template <int Count>
HP_DEVICE void shrink_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count));
}

// Two f32 to a pair of the narrower type, `low` in the lower half.
template <Element To>
HP_DEVICE std::uint32_t pack(float low, float high) {
  std::uint32_t pair;
  if constexpr (To == Element::BF16) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  }
  return pair;
}

// Stores four 8x8 matrices of 16-bit values; lane l gives the address of row l % 8 of matrix l / 8.
HP_DEVICE void store_matrices(std::uint32_t address, std::uint32_t a, std::uint32_t b,
                              std::uint32_t c, std::uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
               "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}

// Stores two of them, transposed: lane l < 16 gives the address of column l % 8 of matrix l / 8.
HP_DEVICE void store_matrices_transposed(std::uint32_t address, std::uint32_t a, std::uint32_t b) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(address),
               "r"(a), "r"(b)
               : "memory");
}

// Stores four, transposed: lane l gives the address of column l % 8 of matrix l / 8.
HP_DEVICE void store_matrices_transposed(std::uint32_t address, std::uint32_t a, std::uint32_t b,
                                         std::uint32_t c, std::uint32_t d) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
      "r"(a), "r"(b), "r"(c), "r"(d)
      : "memory");
}

HP_DEVICE void store_float(std::uint32_t address, float value) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(address), "f"(value) : "memory");
}

HP_DEVICE uint4 load_eight(std::uint32_t address) {
  uint4 eight;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(eight.x), "=r"(eight.y), "=r"(eight.z), "=r"(eight.w)
               : "r"(address)
               : "memory");
  return eight;
}

HP_DEVICE void store_pair(std::uint32_t address, float low, float high) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(low), "f"(high) : "memory");
}

// The address of byte `column` of row `row` in a box at `box`, whose rows of kRowBytes are swizzled
// by as many bytes.
template <int kRowBytes = 128>
HP_DEVICE std::uint32_t swizzled(std::uint32_t box, int row, int column) {
  static_assert(kRowBytes == 128 || kRowBytes == 64);
  const int turn = kRowBytes == 128 ? row & 7 : row / 2 & 3;
  return box + static_cast<std::uint32_t>(row * kRowBytes + (column ^ (turn << 4)));
}

}  // namespace harpe::device
