#include "machine/mesh.h"

#include <algorithm>

namespace harpe {

std::int64_t Mesh::ranks() const {
  std::int64_t product = 1;
  for (const MeshAxis& axis : axes) product *= axis.size;
  return product;
}

std::string print_mesh_option(const Mesh& mesh) {
  std::string out;
  for (const MeshAxis& axis : mesh.axes) {
    out += (out.empty() ? "" : ",") + axis.name + "=" + std::to_string(axis.size);
  }
  return out;
}

Checked<Ok> check_mesh(const Mesh& mesh) {
  if (mesh.axes.empty()) return make_diag(DiagCode::M101, {{"mesh", mesh.name}});
  const auto size_refused = [&](const std::string& what, std::int64_t size) {
    return make_diag(
        DiagCode::M102,
        {{"mesh", print_mesh_option(mesh)}, {"what", what}, {"size", size}, {"limit", kMaxRanks}});
  };
  std::int64_t product = 1;
  for (auto axis = mesh.axes.begin(); axis != mesh.axes.end(); ++axis) {
    if (axis->size < 1 || axis->size > kMaxRanks) {
      return size_refused("the size of axis `" + axis->name + "`", axis->size);
    }
    // Both factors are at most kMaxRanks here, so the product cannot overflow.
    product *= axis->size;
    if (product > kMaxRanks) {
      return size_refused("the product of axes up to `" + axis->name + "`", product);
    }
    const auto twin = std::find_if(mesh.axes.begin(), axis,
                                   [&](const MeshAxis& other) { return other.name == axis->name; });
    if (twin != axis) {
      return make_diag(DiagCode::M103, {{"mesh", print_mesh_option(mesh)}, {"name", axis->name}});
    }
  }
  return Ok{};
}

std::vector<std::int64_t> coordinates_of(const Mesh& mesh, RankId rank) {
  HP_CHECK(rank.valid() && rank.value < mesh.ranks(),
           "rank " + std::to_string(rank.value) + " of mesh `" + mesh.name + "`");
  std::vector<std::int64_t> coordinates(mesh.axes.size());
  std::int64_t rest = rank.value;
  for (std::size_t i = mesh.axes.size(); i-- > 0;) {
    coordinates[i] = rest % mesh.axes[i].size;
    rest /= mesh.axes[i].size;
  }
  return coordinates;
}

RankId rank_of(const Mesh& mesh, std::span<const std::int64_t> coordinates) {
  HP_CHECK(coordinates.size() == mesh.axes.size(),
           std::to_string(coordinates.size()) + " coordinates on mesh `" + mesh.name + "`");
  std::int64_t rank = 0;
  for (std::size_t i = 0; i < coordinates.size(); ++i) {
    const MeshAxis& axis = mesh.axes[i];
    HP_CHECK(coordinates[i] >= 0 && coordinates[i] < axis.size,
             "coordinate " + std::to_string(coordinates[i]) + " of axis `" + axis.name + "`");
    rank = rank * axis.size + coordinates[i];
  }
  return RankId(rank);
}

int find_axis(const Mesh& mesh, std::string_view name) {
  const auto found = std::ranges::find(mesh.axes, name, &MeshAxis::name);
  return found == mesh.axes.end() ? -1 : static_cast<int>(found - mesh.axes.begin());
}

}  // namespace harpe
