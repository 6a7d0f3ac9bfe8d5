#include "verify/model.h"

#include <algorithm>

#include "ir/instantiate.h"
#include "support/units.h"
#include "verify/model_builder.h"

namespace harpe::verifier {
namespace {

template <class Item>
int index_of(const std::vector<Item>& items, std::string_view name) {
  const auto found = std::ranges::find(items, name, &Item::name);
  return found == items.end() ? -1 : static_cast<int>(found - items.begin());
}

}  // namespace

int Model::find_buffer(std::string_view name) const { return index_of(buffers, name); }
int Model::find_nest(std::string_view name) const { return index_of(nests, name); }
int Model::find_digit(std::string_view name) const { return index_of(digits, name); }

std::int64_t Model::coordinate(RankId rank, std::span<const int> mesh_axes) const {
  std::int64_t flat = 0;
  for (const int axis : mesh_axes) {
    const auto a = static_cast<std::size_t>(axis);
    std::int64_t position = rank.value;
    for (std::size_t i = mesh.size(); --i > a;) position /= mesh[i].size;
    flat = flat * mesh[a].size + position % mesh[a].size;
  }
  return flat;
}

bool Model::is_home(int buffer, RankId rank, std::int64_t block) const {
  const BufferModel& model = buffers[static_cast<std::size_t>(buffer)];
  for (std::size_t i = 0; i < model.home.size(); ++i) {
    if (model.home[i].empty()) continue;
    const std::int64_t value = block / model.radix.strides[i] % model.radix.extents[i];
    if (value != coordinate(rank, model.home[i])) return false;
  }
  return true;
}

bool Model::is_empty(const NestModel& nest, std::span<const std::int32_t> point) const {
  return std::ranges::any_of(nest.axes, [&](const AxisView& view) {
    const AxisModel& axis = axes[static_cast<std::size_t>(view.axis)];
    if (!axis.has_empty) return false;
    const auto block = static_cast<std::size_t>(product(view.strides, point));
    return axis.begin[block] == axis.end[block];
  });
}

bool Model::is_masked(const StatementModel& statement, std::span<const std::int32_t> point) const {
  if (!statement.mask) return false;
  const MaskModel& mask = *statement.mask;
  const AxisModel& queries = axes[static_cast<std::size_t>(mask.queries.axis)];
  const AxisModel& keys = axes[static_cast<std::size_t>(mask.keys.axis)];
  const auto rows = static_cast<std::size_t>(product(mask.queries.strides, point));
  const auto columns = static_cast<std::size_t>(product(mask.keys.strides, point));
  if (keys.begin[columns] < mask.prefix) return false;
  const std::int64_t last_seen = queries.end[rows] - 1 + mask.diagonal;
  if (keys.begin[columns] > last_seen) return true;
  if (!mask.reach) return false;  // `reach` may exceed the axis
  const std::int64_t first = queries.begin[rows] + mask.diagonal + 1;
  return keys.end[columns] <= saturating_add(first, -*mask.reach);
}

std::vector<std::int32_t> point_of(const Radix& radix, std::int64_t block) {
  std::vector<std::int32_t> point(radix.extents.size());
  for (std::size_t i = 0; i < point.size(); ++i) {
    point[i] = static_cast<std::int32_t>(block / radix.strides[i] % radix.extents[i]);
  }
  return point;
}

Checked<Model> Model::make(const Program& program, const Mesh& mesh, const NormalForm& form,
                           const AxisCuts& cuts) {
  HP_REQUIRE_OK(check_mesh(mesh));
  HP_REQUIRE_OK(check_program(program));
  Model model;
  ModelBuilder builder(program, form, model);
  HP_REQUIRE_OK(builder.refine_mesh(mesh));
  HP_REQUIRE_OK(builder.add_axes());
  HP_REQUIRE_OK(builder.lay_out_axes());
  builder.cut_axes(cuts);
  builder.add_routes();
  HP_REQUIRE_OK(builder.tie_slots());
  HP_REQUIRE_OK(builder.add_buffers());
  HP_REQUIRE_OK(builder.place_buffers());
  HP_REQUIRE_OK(builder.add_nests());
  return model;
}

}  // namespace harpe::verifier
