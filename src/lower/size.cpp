#include "lower/size.h"

namespace harpe {
namespace {

std::int64_t extent_of(const NormalForm& form, const std::string& digit) {
  for (const Split& split : form.splits) {
    for (const Digit& each : split.digits) {
      if (each.name == digit) return each.extent.value_or(1);
    }
  }
  return 1;
}

std::int64_t ranks_along(const Mesh& mesh, const MeshRef& axes) {
  std::int64_t ranks = 1;
  for (const std::string& name : axes) {
    const int axis = find_axis(mesh, name);
    if (axis >= 0) ranks *= mesh.axes[static_cast<std::size_t>(axis)].size;
  }
  return ranks;
}

}  // namespace

double count_tasks(const Mesh& whole, const NormalForm& form, const NestForm& nest) {
  const Mesh mesh = refined(whole, form);
  double steps = 1;
  double transfers = 0;
  for (const NestItem& item : nest.items) {
    if (const auto* loop = std::get_if<For>(&item)) {
      steps *= static_cast<double>(extent_of(form, loop->digit));
    }
    if (const auto* move = std::get_if<Move>(&item)) {
      transfers += steps > 1 ? steps : static_cast<double>(ranks_along(mesh, move->over));
    }
  }
  return steps + transfers;
}

double count_tasks(const Mesh& mesh, const NormalForm& form) {
  double tasks = 0;
  for (const NestForm& nest : form.nests) tasks += count_tasks(mesh, form, nest);
  return static_cast<double>(mesh.ranks()) * tasks;
}

}  // namespace harpe
