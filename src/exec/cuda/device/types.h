#pragma once

// Plain types shared by host and device. Compiled by NVRTC, which has no standard headers, by nvcc
// and by the host compiler.

#ifdef __CUDACC_RTC__
namespace std {
using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long long;
}  // namespace std
#else
#include <cstdint>
#endif

#ifdef __CUDACC__
#define HP_DEVICE __device__ __forceinline__
#define HP_SHARED_CODE __host__ __device__ constexpr
#else
#define HP_DEVICE inline  // tests run it on the host too
#define HP_SHARED_CODE constexpr
#endif

namespace harpe::device {

enum class Element : std::uint8_t { BF16, F16, F32 };

HP_SHARED_CODE int bytes_of(Element element) { return element == Element::F32 ? 4 : 2; }

HP_SHARED_CODE int ceil_div(int value, int by) { return (value + by - 1) / by; }

// Layout of B of a GEMM: rows along N (B[k, n]) or along K (B[n, k]).
enum class GemmLayout : std::uint8_t { NMajor, KMajor };

// Of attention's operands [batch, row, head, column], in elements.
struct AttentionStrides {
  std::int64_t batch;
  std::int64_t row;
  std::int64_t head;
};

// The output of cuTensorMapEncodeTiled: opaque, read only by the bulk copy engine.
struct alignas(64) TensorMap {
  std::uint8_t bytes[128];
};

// Maximum shared memory of one block on sm_90.
inline constexpr int kSharedMemoryLimit = 227 * 1024;

}  // namespace harpe::device
