#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "machine/mesh.h"

namespace harpe {

// How a named schedule uses the mesh: it divides the axes into parts and assigns the parts to
// levels. A part is a whole axis or a factor of one. An axis with several parts becomes one
// `refine` step.
class MeshPlan {
 public:
  // Parts, major first. Levels are disjoint.
  struct Level {
    std::vector<int> parts;
    std::int64_t ranks = 1;
    [[nodiscard]] bool empty() const { return parts.empty(); }
  };

  explicit MeshPlan(const Mesh& mesh);

  // All axes as one level.
  [[nodiscard]] Level all() const;

  // The first axis, and the others as one level. A mesh of one axis is factored, with `outer` ranks
  // in the first level (requires: outer divides its size).
  [[nodiscard]] std::pair<Level, Level> outer_and_inner(std::int64_t outer);

  // Cuts a level into an outer level of `major` ranks and the rest; factors one part if necessary.
  // None if `major` does not match a factor of a part. A level of one rank is empty.
  [[nodiscard]] std::optional<std::pair<Level, Level>> cut(const Level& level, std::int64_t major);

  [[nodiscard]] std::int64_t size_of(int part) const {
    return parts_[static_cast<std::size_t>(part)].size;
  }
  [[nodiscard]] const Mesh& mesh() const { return mesh_; }

  struct Refinement {
    std::string axis;
    std::vector<std::int64_t> factors;
    std::vector<int> parts;
  };
  [[nodiscard]] std::vector<Refinement> refinements() const;
  // The whole axis that a part is, or "" if the part is a factor named by a refinement.
  [[nodiscard]] std::string axis_of(int part) const;

 private:
  struct Part {
    int axis;
    std::int64_t size;
  };
  std::pair<int, int> halve(int part, std::int64_t major);

  Mesh mesh_;
  std::vector<Part> parts_;
  std::vector<std::vector<int>> of_axis_;  // per mesh axis its parts, major first
};

// The largest divisor of n that is at most its square root: 8 -> 2, 7 -> 1.
[[nodiscard]] std::int64_t smaller_factor(std::int64_t n);

}  // namespace harpe
