#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/blocks.h"
#include "plan/plan.h"

namespace harpe {

constexpr std::size_t kMostViewAxes = 8;

// A tensor in a caller's memory.
struct TensorView {
  std::byte* data = nullptr;  // of the first element
  DType dtype = DType::F32;
  std::size_t axes = 0;
  std::array<std::int64_t, kMostViewAxes> shape{};
  std::array<std::int64_t, kMostViewAxes> strides{};  // elements
};

// One rank's home of an input or output, as a tensor with the buffer's dimensions: along each, the
// rank's blocks follow each other in their logical order.
struct LocalHome {
  std::string buffer;
  Role role = Role::In;
  DType dtype = DType::F32;
  std::vector<std::int64_t> shape;  // all zeros if the rank holds no part
  AllocId alloc{};                  // none if the rank holds no part
  // No other rank reads or writes it, so it may lie anywhere in this rank's memory. Otherwise its
  // data goes through memory that peers can access.
  bool is_own = true;

  [[nodiscard]] std::int64_t bytes() const;
};

// All inputs, then all outputs (buffers that are both come between), in the order of the program. A
// dense tensor of a home's shape has the layout of its allocation (plan/slots.h).
[[nodiscard]] std::vector<LocalHome> local_homes(const Plan& plan, const Blocks& blocks,
                                                 RankId rank);

// Row-major without gaps: the tensor can replace the allocation.
[[nodiscard]] bool is_dense(const TensorView& tensor);

}  // namespace harpe
