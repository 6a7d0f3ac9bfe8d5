#include <algorithm>
#include <map>
#include <utility>

#include "harpe/executable.h"
#include "ir/tensor.h"
#include "library/boundary.h"
#include "library/dtypes.h"
#include "library/plan_state.h"
#include "library/views.h"
#include "run/run.h"

namespace harpe::library {
namespace {

// A rank's home of a buffer, and the layout of the rank's tensor of it.
struct Shard {
  const Buffer* declared = nullptr;
  const v1::Buffer* buffer = nullptr;
  const std::vector<v1::Rectangle>* home = nullptr;
  std::vector<std::vector<v1::Range>> positions = {};  // per dimension, ascending
  // Per dimension: maps the first index of a range to its position in the rank's tensor.
  std::vector<std::map<std::int64_t, std::int64_t>> places = {};
  std::vector<std::int64_t> shape = {};  // of that tensor
};

void lay_out(Shard& shard) {
  for (std::size_t axis = 0; axis < shard.buffer->shape.size(); ++axis) {
    std::map<std::int64_t, std::int64_t> lengths;
    for (const v1::Rectangle& each : *shard.home) {
      lengths[each[axis].begin] = each[axis].end - each[axis].begin;
    }
    std::int64_t extent = 0;
    auto& positions = shard.positions.emplace_back();
    auto& places = shard.places.emplace_back();
    for (const auto& [begin, length] : lengths) {
      positions.push_back({begin, begin + length});
      places[begin] = extent;
      extent += length;
    }
    shard.shape.push_back(extent);
  }
}

harpe::Checked<Shard> find_shard(const v1::Plan& plan, const std::string& name, int rank) {
  const Program& program = plan.state().plan.program;
  const auto buffer = std::ranges::find(plan.buffers(), name, &v1::Buffer::name);
  if (buffer == plan.buffers().end()) HP_REQUIRE_OK(check_names(program, {name}, Role::In));
  const auto ranks = std::ssize(buffer->homes);
  if (rank < 0 || rank >= ranks) {
    return make_diag(DiagCode::I311, {{"argument", "rank"},
                                      {"wanted", "one of the plan's " + std::to_string(ranks)},
                                      {"found", rank}});
  }
  Shard shard{.declared = find_buffer(program, name),
              .buffer = &*buffer,
              .home = &buffer->homes[static_cast<std::size_t>(rank)]};
  lay_out(shard);
  return shard;
}

// The part of a view that starts at `begin` and has the rectangle's size.
template <class Memory>
v1::BasicView<Memory> part_of(v1::BasicView<Memory> view, const v1::Rectangle& rectangle,
                              const std::vector<std::int64_t>& begin) {
  using Byte = std::conditional_t<std::is_const_v<Memory>, const std::byte, std::byte>;
  std::int64_t offset = 0;
  for (std::size_t axis = 0; axis < view.axes; ++axis) {
    offset += begin[axis] * view.strides[axis];
    view.shape[axis] = rectangle[axis].end - rectangle[axis].begin;
  }
  view.data = static_cast<Byte*>(view.data) + offset * v1::size_in_bytes(view.dtype);
  return view;
}

// Calls visit(rectangle, its begin in the whole tensor, its begin in the rank's tensor).
template <class Visit>
void for_each_rectangle(const Shard& shard, const Visit& visit) {
  for (const v1::Rectangle& rectangle : *shard.home) {
    std::vector<std::int64_t> in_whole;
    std::vector<std::int64_t> in_part;
    for (std::size_t axis = 0; axis < rectangle.size(); ++axis) {
      in_whole.push_back(rectangle[axis].begin);
      in_part.push_back(shard.places[axis].at(rectangle[axis].begin));
    }
    visit(rectangle, in_whole, in_part);
  }
}

harpe::Checked<v1::Tensor> cut_shard(const v1::Plan& plan, const std::string& name, int rank,
                                     const v1::ConstView& whole) {
  HP_TRY(const Shard shard, find_shard(plan, name, rank));
  HP_REQUIRE_OK(check_view(*shard.declared, shard.buffer->shape, whole, "whole"));
  HostTensor part = make_tensor(internal_dtype(shard.buffer->dtype), shard.shape);
  v1::Tensor tensor = to_tensor(std::move(part));
  for_each_rectangle(shard, [&](const auto& rectangle, const auto& in_whole, const auto& in_part) {
    write_view(copy_view(part_of(whole, rectangle, in_whole)),
               part_of(tensor.view(), rectangle, in_part));
  });
  return tensor;
}

harpe::Checked<v1::Done> put_shard(const v1::Plan& plan, const std::string& name, int rank,
                                   const v1::ConstView& part, const v1::View& whole) {
  HP_TRY(const Shard shard, find_shard(plan, name, rank));
  HP_REQUIRE_OK(check_view(*shard.declared, shard.shape, part, "part"));
  HP_REQUIRE_OK(check_output(plan.state().plan.program, *shard.declared, whole, "whole"));
  for_each_rectangle(shard, [&](const auto& rectangle, const auto& in_whole, const auto& in_part) {
    write_view(copy_view(part_of(part, rectangle, in_part)), part_of(whole, rectangle, in_whole));
  });
  return v1::Done{};
}

}  // namespace
}  // namespace harpe::library

namespace harpe::v1 {

Checked<std::vector<std::vector<Range>>> positions(const Plan& plan, const std::string& name,
                                                   int rank) {
  using All = std::vector<std::vector<Range>>;
  return library::enter<All>({}, [&](library::Call&) -> harpe::Checked<All> {
    HP_TRY(library::Shard found, library::find_shard(plan, name, rank));
    return std::move(found.positions);
  });
}

Checked<Tensor> shard(const Plan& plan, const std::string& name, int rank, const ConstView& whole) {
  return library::enter<Tensor>(
      {}, [&](library::Call&) { return library::cut_shard(plan, name, rank, whole); });
}

Checked<Done> unshard(const Plan& plan, const std::string& name, int rank, const ConstView& part,
                      const View& whole) {
  return library::enter<Done>(
      {}, [&](library::Call&) { return library::put_shard(plan, name, rank, part, whole); });
}

}  // namespace harpe::v1
