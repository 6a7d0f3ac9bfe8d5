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

// A tensor in memory of a caller's.
struct TensorView {
  std::byte* data = nullptr;  // of the first element
  DType dtype = DType::F32;
  std::size_t axes = 0;
  std::array<std::int64_t, kMostViewAxes> shape{};
  std::array<std::int64_t, kMostViewAxes> strides{};  // elements
};

// What one rank holds at home of an input or an output: a tensor of as many dimensions as the
// buffer, the blocks that it holds one behind the other in their logical order along each.
struct LocalHome {
  std::string buffer;
  Role role = Role::In;
  DType dtype = DType::F32;
  std::vector<std::int64_t> shape;  // all zeros where the rank holds nothing
  AllocId alloc{};                  // none where the rank holds nothing
  // No other rank reads or writes it: it may be anywhere in this rank's memory. Else its data goes
  // through memory that peers reach.
  bool is_own = true;

  [[nodiscard]] std::int64_t bytes() const;
};

// Of all inputs, then all outputs (what is both between them), in the order of the program. A dense
// tensor of a home's shape lies as its allocation does (plan/slots.h).
[[nodiscard]] std::vector<LocalHome> local_homes(const Plan& plan, const Blocks& blocks,
                                                 RankId rank);

// Row-major without gaps: the tensor can take the allocation's place.
[[nodiscard]] bool is_dense(const TensorView& tensor);

}  // namespace harpe
