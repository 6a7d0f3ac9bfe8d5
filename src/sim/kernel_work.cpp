#include "sim/kernel_work.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "offers/few_queries.h"
#include "plan/ref_layouts.h"
#include "sim/variants.h"
#include "support/check.h"

namespace harpe {
namespace {

using launch::Arrival;
using launch::Kernel;
using launch::Panel;

double elements_of(const launch::Place& place) {
  double count = 1;
  for (const Interval& side : place.span) count *= static_cast<double>(side.size());
  return count;
}

const Arrival& arrival_of(const Kernel& kernel, std::int32_t at) {
  return kernel.arrivals[static_cast<std::size_t>(at)];
}

// The places of one operand, each counted once.
class Operand {
 public:
  explicit Operand(const PlaceBytes& bytes_of) : bytes_of_(bytes_of) {}

  // True if the place is a new one.
  bool add(const launch::Place& place) {
    if (std::ranges::any_of(known_, [&](const launch::Place* one) { return *one == place; }))
      return false;
    known_.push_back(&place);
    bytes_ += bytes_of_(place);
    return true;
  }
  [[nodiscard]] double bytes() const { return bytes_; }
  [[nodiscard]] double count() const { return static_cast<double>(known_.size()); }

 private:
  const PlaceBytes& bytes_of_;
  std::vector<const launch::Place*> known_;
  double bytes_ = 0;
};

double points_of(const LeafShape& shape) {
  return shape.batch * shape.rows * shape.columns * shape.depth;
}

// Computes the extents of a problem without batch from the numbers of elements of A, B and C.
struct Extents {
  double rows, columns, depth;
};
Extents extents_of(const Arrival& arrival, const Panel& panel) {
  const double a = elements_of(arrival.reads[0]);
  const double b = elements_of(arrival.reads[1]);
  const double c = elements_of(panel.stores.front());
  return {
      .rows = std::sqrt(a * c / b), .columns = std::sqrt(b * c / a), .depth = std::sqrt(a * b / c)};
}

// False for panels that store the result of an earlier panel, or only add up addends.
bool multiplies(const Kernel& kernel, const Panel& panel) {
  const auto same = std::ranges::find(kernel.panels, panel.meets, &Panel::meets);
  return !panel.meets.empty() && &*same == &panel;
}

// Sums over the panels of GEMM kernels.
class GemmSums {
 public:
  explicit GemmSums(const PlaceBytes& bytes_of)
      : bytes_of_(bytes_of), a_(bytes_of), b_(bytes_of), first_b_(bytes_of) {}

  void add(const Kernel& kernel) {
    const auto waits = [&](std::int32_t at) { return arrival_of(kernel, at).when.has_value(); };
    for (const Panel& panel : kernel.panels) {
      if (!multiplies(kernel, panel)) {
        stored_ += bytes_of_(panel.stores.front());
        continue;
      }
      add(kernel, panel);
      // Panels that do not wait run in step and share what they read.
      const bool is_in_step = std::ranges::none_of(panel.meets, waits);
      if (!is_in_step || in_step_ == 0) readers_ += 1;
      if (is_in_step) in_step_ += 1;
    }
  }

  [[nodiscard]] LaunchWork work(double flops, bool is_one_tile, const Processor& processor) const {
    const double used = points_ > 0 ? std::min(1.0, flops / (2 * points_)) : 1;
    const double groups = std::max(1.0, first_b_.count());
    const double cache =
        is_one_tile && groups == 1 ? std::numeric_limits<double>::max() : processor.cache_bytes;
    return {
        .shape = {.batch = groups,
                  .rows = used * rows_ / groups,
                  .columns = columns_,
                  .depth = depth_,
                  .flops = flops,
                  .bytes = used * read_in_step(a_.bytes(), a_each_, cache) +
                           read_in_step(b_.bytes(), b_each_, cache) + used * (stored_ + carried_)},
        .carried = used * carried_,
        .again = b_.bytes() > cache ? b_.bytes() : 0,
        .in_step = in_step_ / groups};
  }

 private:
  void add(const Kernel& kernel, const Panel& panel) {
    double depth = 0;
    for (const std::int32_t at : panel.meets) {
      const Arrival& arrival = arrival_of(kernel, at);
      const Extents extents = extents_of(arrival, panel);
      if (depth == 0) {
        rows_ += extents.rows;
        first_b_.add(arrival.reads[1]);
      }
      depth += extents.depth;
      columns_ = std::max(columns_, extents.columns);
      points_ += extents.rows * extents.columns * extents.depth;
      a_.add(arrival.reads[0]);
      b_.add(arrival.reads[1]);
      a_each_ += bytes_of_(arrival.reads[0]);
      b_each_ += bytes_of_(arrival.reads[1]);
    }
    depth_ = std::max(depth_, depth);
    const double stored = bytes_of_(panel.stores.front());
    stored_ += stored;
    if (panel.adds) carried_ += stored;
  }

  [[nodiscard]] double read_in_step(double once, double each, double cache) const {
    return once > cache ? std::min(each, readers_ * once) : once;
  }

  const PlaceBytes& bytes_of_;
  Operand a_, b_, first_b_;
  double a_each_ = 0;
  double b_each_ = 0;
  double readers_ = 0;  // panels that run in step with no other; those in step count as one
  double in_step_ = 0;
  double rows_ = 0;
  double columns_ = 0;
  double depth_ = 0;
  double points_ = 0;
  double stored_ = 0;
  double carried_ = 0;
};

double flops_of(std::span<const TaskPart> tasks) {
  double flops = 0;
  for (const TaskPart& task : tasks) flops += task.work.shape.flops;
  return flops;
}

// The states that a kernel of few queries joins one after the other, of a head group of
// `row_elements` of queries and `column_elements` of keys in all.
double count_joined(const KeyShares& cut, double row_elements, double column_elements,
                    const LeafShape& shape) {
  constexpr double kTogether = 8;  // queries
  constexpr double kBunch = 4;     // states: the time until the state of a bunch is there
  const double key_heads = column_elements / (shape.columns * shape.depth);  // of all sequences
  const double pairs = key_heads * static_cast<double>(cut.groups);
  const double queries = row_elements / shape.depth / pairs;
  const auto parts =
      static_cast<std::int64_t>(std::max(1.0, std::ceil(static_cast<double>(cut.shares) / pairs)));
  const double second = has_bunches(parts) ? kBunch : 0;
  return static_cast<double>(joined_in_turn(parts)) * std::ceil(queries / kTogether) + second;
}

bool is_same(const Ref& one, const Ref& other) {
  return one.alloc == other.alloc && one.boxes == other.boxes && one.when == other.when;
}

}  // namespace

LaunchWork gemm_work(std::span<const Kernel> kernels, std::span<const TaskPart> tasks,
                     bool is_one_tile, const Processor& processor, const PlaceBytes& bytes_of) {
  GemmSums sums(bytes_of);
  for (const Kernel& kernel : kernels) sums.add(kernel);
  return sums.work(flops_of(tasks), is_one_tile, processor);
}

LaunchWork attention_work(std::span<const Kernel> kernels, std::span<const TaskPart> tasks,
                          bool masked, const PlaceBytes& bytes_of) {
  const TaskPart& first = tasks.front();
  LaunchWork work{.shape = first.work.shape};
  LeafShape& shape = work.shape;
  shape.bytes = 0;
  double rows = 0;
  double columns = 0;
  double key_bytes = 0;
  for (const Kernel& kernel : kernels) {
    for (const Arrival& arrival : kernel.arrivals) {
      columns += elements_of(arrival.reads.front());
      for (std::size_t i = 0; i < arrival.reads.size(); ++i) {
        if (!launch::is_held(arrival.reads, i)) key_bytes += bytes_of(arrival.reads[i]);
      }
    }
    for (const Panel& panel : kernel.panels) {
      rows += elements_of(panel.reads.front());
      shape.bytes += bytes_of(panel.reads.front());
      for (std::size_t i = 1; i < panel.reads.size(); ++i) work.carried += bytes_of(panel.reads[i]);
      for (const launch::Place& place : panel.stores) shape.bytes += bytes_of(place);
    }
  }
  const std::optional<KeyShares> cut = read_shares(kernels.front().variant);
  const double groups = cut ? static_cast<double>(cut->groups) : 1;
  shape.bytes += work.carried + groups * key_bytes;
  if (cut) work.joined = count_joined(*cut, rows, columns, shape);
  shape.rows *= rows / first.row_elements;
  shape.columns *= columns / first.column_elements;
  shape.flops = flops_of(tasks);
  double points = 0;
  for (const TaskPart& task : tasks) points += points_of(task.work.shape);
  // Panels with different keys are separate problems. Under a mask this cannot be derived, because
  // the mask hides points.
  const double apart = masked ? 1 : std::max(1.0, points_of(shape) / points);
  shape.batch *= apart * groups;
  shape.rows /= apart * groups;
  shape.columns /= apart;
  return work;
}

LaunchWork work_side_by_side(std::span<const TaskPart> tasks) {
  HP_CHECK(!tasks.empty(), "a launch has tasks");
  LaunchWork work = tasks.front().work;
  double points = points_of(work.shape);
  const double first = points;
  for (const TaskPart& task : tasks.subspan(1)) {
    points += points_of(task.work.shape);
    work.shape.flops += task.work.shape.flops;
    work.shape.bytes += task.work.shape.bytes;
    work.carried += task.work.carried;
  }
  work.shape.batch *= points / first;
  return work;
}

void number_panels(std::span<TaskPart> tasks) {
  std::size_t panel = 0;
  for (std::size_t first = 0; first < tasks.size(); ++panel) {
    std::size_t end = first + 1;
    double depth = tasks[first].work.shape.depth;
    for (; end < tasks.size() && is_same(*tasks[end].target, *tasks[first].target); ++end) {
      depth += tasks[end].work.shape.depth;
    }
    double multiplied = 0;
    for (; first < end; ++first) {
      TaskPart& task = tasks[first];
      task.panel = panel;
      task.multiplied = multiplied / depth;
      task.ends_panel = first + 1 == end;
      multiplied += task.work.shape.depth;
    }
  }
}

std::vector<double> shares_of(std::span<const TaskPart> tasks, double waves) {
  double flops = 0;
  double bytes = 0;
  for (const TaskPart& task : tasks) {
    flops += task.work.shape.flops;
    bytes += task.work.shape.bytes;
  }
  std::vector<double> shares;
  for (const TaskPart& task : tasks) {
    shares.push_back(flops > 0   ? task.work.shape.flops / flops
                     : bytes > 0 ? task.work.shape.bytes / bytes
                                 : 1 / static_cast<double>(tasks.size()));
  }
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    std::size_t whole = tasks.size() - 1;
    while (whole > i && !is_same(*tasks[whole].target, *tasks[i].target)) --whole;
    if (whole == i) continue;
    const double begun = shares[i] / waves;
    shares[whole] += shares[i] - begun;
    shares[i] = begun;
  }
  return shares;
}

}  // namespace harpe
