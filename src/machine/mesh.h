#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "support/diag.h"
#include "support/ids.h"

namespace harpe {

struct MeshAxis {
  std::string name;
  std::int64_t size = 1;
  friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

// One mesh axis, or several as one, major first. `(node, gpu)` is a MeshRef of two names.
using MeshRef = std::vector<std::string>;

// `mesh two = node:2, gpu:8`: named axes, major first, the last one fastest. A rank is the
// row-major index of its coordinates; this is the only rank order in the system.
struct Mesh {
  std::string name;
  std::vector<MeshAxis> axes;
  friend bool operator==(const Mesh&, const Mesh&) = default;

  [[nodiscard]] std::int64_t ranks() const;
};

constexpr std::int64_t kMaxRanks = 65536;

// "node=2,gpu=4", as on a command line.
[[nodiscard]] std::string print_mesh_option(const Mesh& mesh);

// Errors: M101 no axis, M102 axis size outside 1..kMaxRanks or product above kMaxRanks, M103 name
// twice.
[[nodiscard]] Checked<Ok> check_mesh(const Mesh& mesh);

[[nodiscard]] std::vector<std::int64_t> coordinates_of(const Mesh& mesh, RankId rank);
[[nodiscard]] RankId rank_of(const Mesh& mesh, std::span<const std::int64_t> coordinates);

// Index of the axis called `name`, or -1.
[[nodiscard]] int find_axis(const Mesh& mesh, std::string_view name);

}  // namespace harpe
