#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "plan/launch_plan.h"
#include "verify/model.h"

namespace harpe::verifier {

// Finds the blocks of a buffer that a rectangle of its elements covers.
class PlaceBlocks {
 public:
  explicit PlaceBlocks(const Model& model) : model_(model) {}

  // Returns disjoint boxes over the buffer's digits; none if the rectangle cuts a block or leaves
  // the buffer. The boxes may contain empty blocks (D12).
  [[nodiscard]] std::optional<std::vector<Box>> find(int buffer, const std::vector<Interval>& span);

 private:
  // Boxes over the digits of one axis.
  [[nodiscard]] const std::optional<std::vector<Box>>& along(int axis, const Interval& part);

  const Model& model_;
  std::map<std::tuple<int, std::int64_t, std::int64_t>, std::optional<std::vector<Box>>> known_;
};

}  // namespace harpe::verifier
