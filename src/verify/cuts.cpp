#include "verify/cuts.h"

#include <algorithm>
#include <vector>

#include "verify/model_builder.h"

namespace harpe::verifier {
namespace {

class CutFinder {
 public:
  CutFinder(const Plan& plan, const launch::LaunchPlan& launches, const Model& model)
      : model_(model), cuts_(model.axes.size()) {
    for (const AxisModel& axis : model.axes) {
      std::vector<std::int64_t>& known = bounds_.emplace_back(axis.begin);
      known.insert(known.end(), axis.end.begin(), axis.end.end());
      std::ranges::sort(known);
    }
    for (const auto* const allocs : {&plan.allocs, &launches.boxes}) {
      for (const Alloc& alloc : *allocs) buffers_.push_back(model.find_buffer(alloc.buffer));
    }
  }

  void look_at(const launch::Place& place) {
    const int buffer = buffers_[place.alloc.index()];
    const auto& axes = model_.buffers[static_cast<std::size_t>(buffer)].axes;
    for (std::size_t i = 0; i < std::min(axes.size(), place.span.size()); ++i) {
      const auto axis = static_cast<std::size_t>(axes[i].axis);
      for (const std::int64_t at : {place.span[i].begin, place.span[i].end}) {
        if (!std::ranges::binary_search(bounds_[axis], at)) cuts_[axis].push_back(at);
      }
    }
  }

  // Gives axes with equal blocks equal cuts.
  AxisCuts finish() {
    AxisCuts all = cuts_;
    for (std::size_t axis = 0; axis < all.size(); ++axis) {
      for (std::size_t other = 0; other < all.size(); ++other) {
        const bool same = model_.axes[axis].begin == model_.axes[other].begin &&
                          model_.axes[axis].end == model_.axes[other].end;
        if (same && other != axis) {
          all[axis].insert(all[axis].end(), cuts_[other].begin(), cuts_[other].end());
        }
      }
      std::ranges::sort(all[axis]);
      const auto tail = std::ranges::unique(all[axis]);
      all[axis].erase(tail.begin(), tail.end());
    }
    const bool is_any = std::ranges::any_of(all, [](const auto& cuts) { return !cuts.empty(); });
    return is_any ? all : AxisCuts();
  }

 private:
  const Model& model_;
  AxisCuts cuts_;
  std::vector<std::vector<std::int64_t>> bounds_;  // per axis, ascending
  std::vector<int> buffers_;                       // per allocation
};

// Converts boxes to finer digits: new digits are taken whole.
void widen(std::vector<Box>& boxes, const Model& coarse, const Model& fine, const Radix& radix) {
  for (Box& box : boxes) {
    Box wider;
    std::size_t next = 0;
    for (const int digit : radix.digits) {
      const bool is_new = static_cast<std::size_t>(digit) >= coarse.digits.size();
      wider.push_back(
          is_new ? Range{.lo = 0, .hi = fine.digits[static_cast<std::size_t>(digit)].extent}
                 : box[next++]);
    }
    box = std::move(wider);
  }
}

}  // namespace

AxisCuts find_cuts(const Plan& plan, const launch::LaunchPlan& launches, const Model& model) {
  CutFinder finder(plan, launches, model);
  for (const launch::Launch& launch : launches.launches) {
    for (const launch::Kernel& kernel : launch.kernels) {
      for (const launch::Arrival& arrival : kernel.arrivals) {
        for (const launch::Place& place : arrival.reads) finder.look_at(place);
      }
      for (const launch::Panel& panel : kernel.panels) {
        for (const launch::Place& place : panel.reads) finder.look_at(place);
        for (const launch::Place& place : panel.stores) finder.look_at(place);
        for (const launch::Addend& addend : panel.addends) {
          for (const launch::Place& place : addend.reads) finder.look_at(place);
        }
        for (const launch::Map& map : panel.maps) {
          for (const launch::Place& place : map.reads) finder.look_at(place);
        }
      }
      for (const launch::FusedCopy& copy : kernel.fused_copies) {
        finder.look_at(copy.from);
        finder.look_at(copy.to);
      }
    }
  }
  return finder.finish();
}

Plan cut_plan(Plan plan, const Model& coarse, const Model& fine) {
  for (Alloc& alloc : plan.allocs) {
    const Radix& radix =
        fine.buffers[static_cast<std::size_t>(fine.find_buffer(alloc.buffer))].radix;
    std::vector<bool> holds;
    std::size_t next = 0;
    for (const int digit : radix.digits) {
      const bool is_new = static_cast<std::size_t>(digit) >= coarse.digits.size();
      holds.push_back(is_new || alloc.holds[next++]);
    }
    alloc.holds = std::move(holds);
  }
  for (Task& task : plan.tasks) {
    for (auto* const refs : {&task.reads, &task.writes}) {
      for (Ref& ref : *refs) {
        const int buffer = fine.find_buffer(plan.allocs[ref.alloc.index()].buffer);
        widen(ref.boxes, coarse, fine, fine.buffers[static_cast<std::size_t>(buffer)].radix);
      }
    }
    if (task.iter.empty()) continue;
    widen(task.iter, coarse, fine,
          fine.nests[static_cast<std::size_t>(fine.find_nest(task.nest))].space);
  }
  return plan;
}

// Adds a least significant digit to an axis: the piece of a block. Blocks with fewer pieces than
// others have empty ones (D12).
void ModelBuilder::cut_axes(const AxisCuts& cuts) {
  for (std::size_t id = 0; id < cuts.size(); ++id) {
    if (cuts[id].empty()) continue;
    AxisModel& axis = model_.axes[id];
    std::vector<std::vector<std::int64_t>> bounds;  // per block
    std::size_t pieces = 1;
    for (std::size_t block = 0; block < axis.begin.size(); ++block) {
      std::vector<std::int64_t>& own = bounds.emplace_back(1, axis.begin[block]);
      for (const std::int64_t at : cuts[id]) {
        if (at > axis.begin[block] && at < axis.end[block]) own.push_back(at);
      }
      own.push_back(axis.end[block]);
      pieces = std::max(pieces, own.size() - 1);
    }
    axis.begin.clear();
    axis.end.clear();
    for (const std::vector<std::int64_t>& own : bounds) {
      for (std::size_t piece = 0; piece < pieces; ++piece) {
        axis.begin.push_back(own[std::min(piece, own.size() - 1)]);
        axis.end.push_back(own[std::min(piece + 1, own.size() - 1)]);
        axis.has_empty = axis.has_empty || axis.begin.back() == axis.end.back();
      }
    }
    axis.blocks *= static_cast<std::int64_t>(pieces);
    axis.digits.push_back(static_cast<int>(model_.digits.size()));
    model_.digits.push_back({.name = axis.name + ".piece",
                             .axis = static_cast<int>(id),
                             .extent = static_cast<std::int32_t>(pieces)});
  }
}

}  // namespace harpe::verifier
