#include "exec/cuda/target/bind_parts.h"

#include <algorithm>

#include "exec/cuda/kernels/copy_engine/copy_launch.h"

namespace harpe::cuda {
namespace {

bool is_all_of(const LaidRef& ref, const launch::Place& place) {
  return ref.alloc == place.alloc && ref.find(place.span) != nullptr &&
         ref.elements() == launch::count_elements(place.span);
}

// One copy of `bytes`, in whole vectors of 16 bytes.
bool is_dense_copy(const LaunchSpecs& specs, std::int64_t bytes) {
  const auto* const copy = specs.size() == 1 ? specs.front().find<CopyLaunch>() : nullptr;
  const auto is_whole = [](DeviceAddress number) { return number % 16 == 0; };
  return copy != nullptr && copy->rows == 1 && copy->bytes == bytes && is_whole(copy->from) &&
         is_whole(copy->to) && is_whole(static_cast<DeviceAddress>(bytes));
}

}  // namespace

Checked<StridedArray> PlacedBinding::place(const LaunchAlone& one, const KernelOperand& operand,
                                           std::span<const launch::Place> from,
                                           std::span<const launch::Place> to) const {
  const bool has_place = operand.index < from.size();
  if (!has_place && operand.index >= to.size()) return operand.array;
  if (!has_place || operand.index >= to.size()) {
    return refuse(std::string(operand.what) + " have no place");
  }
  const launch::Place& own = from[operand.index];
  const launch::Place& stated = to[operand.index];
  const auto here = locate((*one.refs)[find_ref(*one.refs, own)], own);
  std::optional<LocatedPlace> there;
  if (own == stated) {
    there = here;
  } else if (std::ranges::equal(own.span, stated.span, {}, &Interval::size, &Interval::size)) {
    there = places_.locate(stated);
  }
  std::optional<StridedArray> placed;
  if (there) placed = places_.move(operand.array, stated.span, *here, *there);
  const bool is_dense =
      placed && placed->extents.back().stride == operand.array.extents.back().stride;
  if (is_dense) return *std::move(placed);
  return refuse(std::string(operand.what) + " cannot lie in `" +
                source_.memory.plan.allocs[stated.alloc.index()].name + "` as they do there");
}

Checked<BoundMap> PlacedBinding::bind_map(const LaunchAlone& one, const StridedArray& result,
                                          const launch::Place& from, const launch::Map& map) const {
  const Plan& plan = source_.memory.plan;
  const Stmt& stmt = actions::statement_of(plan, map.nest, map.stmt);
  const auto is_read = [&](const Access& operand) {
    return std::ranges::any_of(map.reads, [&](const launch::Place& place) {
      return plan.allocs[place.alloc.index()].buffer == operand.buffer;
    });
  };
  BoundMap bound{.leaf = find_leaf_contract(stmt.leaf)->leaf, .is_second = false, .other = {}};
  if (map.reads.size() + 1 != stmt.operands.size()) {
    return refuse("`" + stmt.leaf + "` takes other operands than one panel and its map's");
  }
  if (map.reads.empty()) return bound;
  bound.is_second = is_read(stmt.operands.front());
  const launch::Place& stated = map.reads.front();
  const Alloc& alloc = plan.allocs[stated.alloc.index()];
  bound.dtype = alloc.dtype;
  const auto here = locate((*one.refs)[find_ref(*one.refs, from)], from);
  const auto there = places_.locate(stated);
  if (there) bound.other = places_.spread(result, from, *here, *there);
  if (bound.other) return bound;
  return refuse("`" + alloc.name + "` does not lie beside the result of `" + stmt.leaf + "`");
}

bool PlacedBinding::is_fixed(const launch::Place& place) const {
  const Plan& plan = source_.memory.plan;
  if (place.alloc.index() >= plan.allocs.size()) return false;  // a box of the launch plan
  const Alloc& alloc = plan.allocs[place.alloc.index()];
  const Blocks& blocks = source_.memory.blocks;
  const int buffer = blocks.find_buffer(alloc.buffer);
  return alloc.level == Level::Home && alloc.rank == launch_.rank && buffer >= 0 &&
         blocks.buffers()[static_cast<std::size_t>(buffer)].role == Role::In;
}

device::FlagWait PlacedBinding::await(std::optional<launch::SignalId> signal) const {
  return signal ? source_.cells.awaited(*signal) : device::FlagWait{};
}

device::WaitContext PlacedBinding::wait_context() const {
  device::WaitContext context = source_.cells.context;
  context.task = static_cast<std::uint32_t>(launch_.does.front().value);
  return context;
}

std::optional<device::RaiseTarget> PlacedBinding::raised(const launch::Raise& raise) const {
  return source_.cells.raised(raise);
}

bool PlacedBinding::is_in_data(launch::SignalId signal) const {
  return source_.cells.is_in_data(signal);
}

std::int32_t* PlacedBinding::rows_used_of(AllocId alloc) const {
  return source_.memory.occupancy.of(alloc);
}

Checked<std::vector<device::CopyJob>> PlacedBinding::copies() const {
  const SpecSource& memory = source_.memory;
  std::vector<device::CopyJob> jobs;
  std::size_t next = 0;
  for (const launch::FusedCopy& fused : kernel_.fused_copies) {
    const std::int64_t size = size_in_bytes(memory.plan.allocs[fused.from.alloc.index()].dtype);
    const std::int64_t bytes = launch::count_elements(fused.from.span) * size;
    const auto found = find_around(launch_.does, next, [&](TaskId task) {
      const TaskAlone& copy = source_.alone[task.index()];
      return is_taken_over(memory.plan, launch_, task) && copy.refs.size() == 2 &&
             is_all_of(copy.refs[0], fused.to) && is_all_of(copy.refs[1], fused.from) &&
             is_dense_copy(prepared_of(source_.alone, task).specs, bytes);
    });
    if (!found) return refuse("none of them makes a copy that it makes");
    next = *found + 1;
    const TaskAlone& copy = source_.alone[launch_.does[*found].index()];
    const auto to = locate(copy.refs[0], fused.to);
    const auto from = locate(copy.refs[1], fused.from);
    device::CopyJob job{.from = pointer_to<const void>(find_address(memory, *from, size)),
                        .to = pointer_to<void>(find_address(memory, *to, size)),
                        .bytes = bytes,
                        .ready = {},
                        .done = nullptr};
    if (fused.raises) {
      const auto target = source_.cells.raised({.signal = *fused.raises, .adds = 1});
      if (target) job.done = target->word;
    }
    jobs.push_back(job);
  }
  return jobs;
}

}  // namespace harpe::cuda
