#include "exec/cuda/target/describe_kernel.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "support/check.h"

namespace harpe::cuda {
namespace {

using Places = std::vector<launch::Place>;

// All places of a task's own kernels.
std::vector<launch::Place*> places_in(std::vector<launch::Kernel>& kernels) {
  std::vector<launch::Place*> places;
  for (launch::Kernel& kernel : kernels) {
    for (launch::Arrival& arrival : kernel.arrivals) {
      for (launch::Place& place : arrival.reads) places.push_back(&place);
    }
    for (launch::Panel& panel : kernel.panels) {
      for (launch::Place& place : panel.reads) places.push_back(&place);
      for (launch::Place& place : panel.stores) places.push_back(&place);
    }
  }
  return places;
}

Places find_all(const SpecSource& source, std::span<const LaidRef> refs,
                const std::vector<StridedArray>& arrays) {
  Places places;
  for (const StridedArray& array : arrays) {
    if (auto place = find_place(source, refs, array)) places.push_back(*std::move(place));
  }
  return places;
}

launch::Kernel describe(const SpecSource& source, std::span<const LaidRef> refs,
                        std::string_view name, const KernelArrays& arrays) {
  launch::Kernel kernel;
  kernel.name = name;
  kernel.joins = arrays.joins;
  for (const std::vector<StridedArray>& arrival : arrays.arrivals) {
    kernel.arrivals.push_back({.reads = find_all(source, refs, arrival), .when = {}});
  }
  for (const KernelArrays::Panel& from : arrays.panels) {
    launch::Panel panel{.dtype = from.dtype, .adds = from.adds};
    panel.meets = from.meets;
    panel.reads = find_all(source, refs, from.reads);
    panel.stores = find_all(source, refs, from.stores);
    kernel.panels.push_back(std::move(panel));
  }
  return kernel;
}

}  // namespace

std::vector<LaidRef> lay_refs(RefLayouts& layouts, const Task& task) {
  std::vector<LaidRef> refs;
  for (const std::vector<Ref>* const all : {&task.writes, &task.reads}) {
    for (const Ref& ref : *all) refs.push_back(layouts.of(ref));
  }
  return refs;
}

std::vector<launch::Kernel> describe_kernels(const SpecSource& source,
                                             std::span<const LaidRef> refs,
                                             const LaunchSpecs& specs) {
  std::vector<KernelArrays> arrays;
  for (const LaunchSpec& spec : specs) arrays.push_back(spec->arrays());
  const bool has_panels =
      std::ranges::any_of(arrays, [](const KernelArrays& one) { return !one.panels.empty(); });
  std::vector<launch::Kernel> kernels;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (has_panels && arrays[i].panels.empty()) arrays[i] = specs[i]->arrays_beside_others();
    kernels.push_back(describe(source, refs, specs[i]->name(), arrays[i]));
  }
  return kernels;
}

bool move_places(std::vector<launch::Kernel>& kernels, const std::vector<LaidRef>& from,
                 const std::vector<LaidRef>& to) {
  std::vector<std::size_t> next(from.size(), 0);  // by reference: the part that probably comes next
  for (launch::Place* const place : places_in(kernels)) {
    const RefLayout::Part* part = nullptr;
    std::size_t ref = 0;
    for (; ref < from.size(); ++ref) {
      if (from[ref].alloc != place->alloc) continue;
      part = from[ref].find(place->span, next[ref]);
      if (part != nullptr) break;
    }
    if (part == nullptr) return false;
    next[ref] = static_cast<std::size_t>(part - from[ref].layout->parts.data());
    place->alloc = to[ref].alloc;
    for (std::size_t axis = 0; axis < place->span.size(); ++axis) {
      const std::int64_t moved = shift_along(from[ref], to[ref], *part, axis);
      place->span[axis].begin += moved;
      place->span[axis].end += moved;
    }
  }
  return true;
}

std::vector<launch::Kernel> kernels_like(const std::vector<LaidRef>& refs, const TaskAlone& like,
                                         std::vector<launch::Kernel> kernels) {
  const bool are_named = move_places(kernels, like.refs, refs);
  HP_CHECK(are_named, "a kernel's places are those that its task names");
  return kernels;
}

TaskAlone describe_alone(const SpecSource& source, TaskId task, LaunchSpecs specs) {
  TaskAlone alone{.specs = std::move(specs),
                  .kernels = {},
                  .refs = lay_refs(source.layouts, source.plan.tasks[task.index()])};
  alone.kernels = describe_kernels(source, alone.refs, alone.specs);
  return alone;
}

}  // namespace harpe::cuda
