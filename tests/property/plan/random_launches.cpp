#include "tests/property/plan/random_launches.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "ir/blocks.h"
#include "support/check.h"

namespace harpe::launch::test {
namespace {

class Generator {
 public:
  Generator(const Plan& plan, std::uint64_t seed)
      : plan_(plan),
        blocks_(Blocks::make(plan.program, plan.mesh, plan.form).value()),
        random_(seed) {
    for (const Task& task : plan.tasks) groups_ = std::max(groups_, task.group + 1);
  }

  LaunchPlan make() {
    static const std::vector<std::string> kTargets = {"h200 sms 132", "cpu", "", "two  spaces"};
    out_.target = pick(kTargets);
    repeat(3, [&] { out_.partials16.push_back(alloc()); });
    repeat(2, [&] { out_.boxes.push_back(box()); });
    repeat(8, [&] { out_.signals.push_back(signal()); });
    repeat(8, [&] { out_.launches.push_back(launch()); });
    return std::move(out_);
  }

 private:
  std::int64_t up_to(std::int64_t last) {
    return std::uniform_int_distribution<std::int64_t>(0, last)(random_);
  }
  std::int32_t small(std::int32_t last) { return static_cast<std::int32_t>(up_to(last)); }
  bool coin() { return up_to(1) == 1; }
  template <class Values>
  typename Values::value_type pick(const Values& values) {
    return values[static_cast<std::size_t>(up_to(std::ssize(values) - 1))];
  }
  // Calls `make` 0 to `most` times.
  template <class Make>
  void repeat(std::int64_t most, const Make& make) {
    for (std::int64_t i = up_to(most); i > 0; --i) make();
  }

  TaskId task() { return TaskId(up_to(std::ssize(plan_.tasks) - 1)); }
  RankId rank() { return RankId(up_to(blocks_.ranks() - 1)); }
  AllocId alloc() { return AllocId(up_to(std::ssize(plan_.allocs) + std::ssize(out_.boxes) - 1)); }
  std::optional<SignalId> maybe_signal() {
    if (out_.signals.empty() || coin()) return std::nullopt;
    return SignalId(up_to(std::ssize(out_.signals) - 1));
  }

  Alloc box() {
    static const std::vector<std::string> kNames = {"box", "nccl.in", "x.1.0.2", "1 first", "past"};
    Alloc box = pick(plan_.allocs);
    // Unique, as names are within a rank.
    box.name = pick(kNames) + "." + std::to_string(out_.boxes.size());
    box.offset = up_to(std::int64_t{1} << 40);
    box.bytes = up_to(std::int64_t{1} << 40);
    return box;
  }

  // A random subject for a signal of this kind.
  std::int32_t subject(SignalKind kind) {
    switch (kind) {
      case SignalKind::Sync:
        return small(static_cast<std::int32_t>(plan_.syncs.size()) - 1);
      case SignalKind::Barrier:
        return small(static_cast<std::int32_t>(plan_.barriers.size()) - 1);
      case SignalKind::Arrival:
      case SignalKind::Pulled:
        return small(groups_ - 1);
      case SignalKind::Credit:
      case SignalKind::RingSpace:
        return rank().value;
      case SignalKind::Arrived:
      case SignalKind::Taken:
        return task().value;
    }
    return 0;
  }

  SignalKind kind() {
    std::vector<SignalKind> kinds = {SignalKind::Credit, SignalKind::RingSpace, SignalKind::Arrived,
                                     SignalKind::Taken};
    if (!plan_.syncs.empty()) kinds.push_back(SignalKind::Sync);
    if (!plan_.barriers.empty()) kinds.push_back(SignalKind::Barrier);
    if (groups_ > 0) kinds.insert(kinds.end(), {SignalKind::Arrival, SignalKind::Pulled});
    return pick(kinds);
  }

  Signal signal() {
    Signal signal;
    signal.rank = rank();
    signal.kind = kind();
    signal.index = subject(signal.kind);
    if (coin()) signal.arrivals = small(std::numeric_limits<std::int32_t>::max());
    repeat(3, [&] { signal.from.push_back(task()); });
    signal.is_posted = coin();
    signal.is_in_data = coin();
    return signal;
  }

  std::vector<Raise> raises() {
    std::vector<Raise> raises;
    repeat(3, [&] {
      if (const std::optional<SignalId> signal = maybe_signal()) raises.push_back(raise(*signal));
    });
    return raises;
  }
  Raise raise(SignalId signal) {
    constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
    return {.signal = signal, .adds = coin() ? 0 : static_cast<std::uint32_t>(up_to(kMost))};
  }
  Place place() {
    Place place{.alloc = alloc(), .span = {}};
    const std::size_t own = plan_.allocs.size();
    const Alloc& at = place.alloc.index() < own ? plan_.allocs[place.alloc.index()]
                                                : out_.boxes[place.alloc.index() - own];
    const auto buffer = static_cast<std::size_t>(blocks_.find_buffer(at.buffer));
    std::vector<std::int64_t> lengths;
    for (const int axis : blocks_.buffers()[buffer].axes) {
      lengths.push_back(blocks_.axes()[static_cast<std::size_t>(axis)].size);
    }
    for (const DimTable& dim : blocks_.buffers()[buffer].dims) {
      if (dim.axes.empty()) lengths.push_back(dim.opaque);
    }
    for (const std::int64_t length : lengths) {
      const std::int64_t begin = coin() ? 0 : up_to(length - 1);
      place.span.push_back({begin, coin() ? length : begin + 1 + up_to(length - begin - 1)});
    }
    return place;
  }
  std::vector<Place> places() {
    std::vector<Place> places;
    repeat(3, [&] { places.push_back(place()); });
    return places;
  }

  Panel panel(const Kernel& kernel) {
    Panel panel;
    panel.reads = places();
    panel.stores = places();
    panel.adds = coin();
    panel.dtype = static_cast<DType>(up_to(static_cast<int>(DType::Bool)));
    if (!kernel.arrivals.empty()) {
      const auto last = static_cast<std::int32_t>(kernel.arrivals.size()) - 1;
      repeat(4, [&] { panel.meets.push_back(small(last)); });
    }
    if (!kernel.fused_stores.empty() && coin()) {
      panel.fused_store = small(static_cast<std::int32_t>(kernel.fused_stores.size()) - 1);
    }
    repeat(3, [&] {
      panel.addends.push_back({.reads = places(), .when = maybe_signal()});
      panel.addends.back().reads.push_back(place());
    });
    return panel;
  }

  Kernel kernel() {
    static const std::vector<std::string> kNames = {"gemm_sm90", "times", "cublaslt.gemm", "a b"};
    Kernel kernel;
    kernel.name = pick(kNames);
    if (coin()) kernel.variant = "tile 128x256 stages 4 cut 2";
    if (coin()) kernel.joins = 1 + small(65'535);
    repeat(4, [&] { kernel.arrivals.push_back({.reads = places(), .when = maybe_signal()}); });
    repeat(2, [&] {
      if (const std::optional<SignalId> signal = maybe_signal()) {
        kernel.fused_stores.push_back(raise(*signal));
      }
    });
    repeat(4, [&] { kernel.panels.push_back(panel(kernel)); });
    repeat(2, [&] {
      kernel.fused_copies.push_back({.from = place(), .to = place(), .raises = maybe_signal()});
    });
    if (!kernel.fused_copies.empty()) kernel.copy_blocks = small(132);
    return kernel;
  }

  Launch launch() {
    Launch launch;
    launch.rank = rank();
    launch.queue = QueueId(up_to(std::ssize(plan_.queues) - 1));
    repeat(4, [&] { launch.does.push_back(task()); });
    launch.lands = !launch.does.empty() && coin();
    launch.is_skipped = coin();
    repeat(2, [&] { launch.kernels.insert(launch.kernels.end(), coin() ? 1 : 3, kernel()); });
    if (!out_.launches.empty()) {
      const std::int64_t last = std::ssize(out_.launches) - 1;
      repeat(2, [&] { launch.after.emplace_back(up_to(last)); });
      repeat(2, [&] { launch.begun.emplace_back(up_to(last)); });
    }
    repeat(2, [&] {
      if (const std::optional<SignalId> signal = maybe_signal()) launch.awaits.push_back(*signal);
    });
    launch.ready = raises();
    launch.all_ready = maybe_signal();
    launch.pulled = raises();
    launch.all_pulled = maybe_signal();
    launch.raises = raises();
    launch.raised_by_engine = coin();
    launch.reserved_sms = coin() ? 0 : small(132);
    launch.begins_epoch = coin();
    launch.bounds_epoch = coin();
    return launch;
  }

  const Plan& plan_;
  Blocks blocks_;
  std::mt19937_64 random_;
  std::int32_t groups_ = 0;
  LaunchPlan out_;
};

}  // namespace

LaunchPlan random_launches(const Plan& plan, std::uint64_t seed) {
  return Generator(plan, seed).make();
}

}  // namespace harpe::launch::test
