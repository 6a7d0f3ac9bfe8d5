#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "exec/cuda/device/types.h"
#include "exec/cuda/library/missing.h"
#include "exec/cuda/library/places.h"
#include "support/result.h"

namespace harpe::library {

// C[m, n] = A[m, k] B, or C += A B with `add`, all row-major; B in `layout`, A stored transposed
// with `m_major`. Strides in elements.
struct LibraryGemmShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  device::Element in = device::Element::BF16;
  device::Element out = device::Element::BF16;
  device::GemmLayout layout = device::GemmLayout::NMajor;
  bool m_major = false;
  std::int64_t a_stride = 0;
  std::int64_t b_stride = 0;
  std::int64_t c_stride = 0;
  bool add = false;
};

// One GEMM of cuBLASLt for a shape.
class LibraryGemm {
 public:
  virtual ~LibraryGemm() = default;
  // The number of algorithms that its heuristics return for the shape, best first by its estimate.
  [[nodiscard]] virtual int algorithms() const = 0;
  // f32 accumulation; addresses on the current device. False if the library refuses.
  [[nodiscard]] virtual bool launch(int algorithm, std::uint64_t a, std::uint64_t b,
                                    std::uint64_t c, void* stream) const = 0;
};

struct CublasLtState;

// Memory that a GEMM may use while it runs, on the current device.
struct Workspace {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
};

class CublasLt {
 public:
  [[nodiscard]] static Result<CublasLt, Missing> open(const Search& search,
                                                      const Workspace& workspace);
  // For GEMMs that run at the same time as others.
  [[nodiscard]] CublasLt with(const Workspace& workspace) const {
    CublasLt other = *this;
    other.workspace_ = workspace;
    return other;
  }
  [[nodiscard]] Result<std::unique_ptr<LibraryGemm>, Missing> prepare(
      const LibraryGemmShape& shape) const;
  [[nodiscard]] std::string version() const;

 private:
  std::shared_ptr<const CublasLtState> state_;
  Workspace workspace_;
};

}  // namespace harpe::library
