#include "verify/signals_in_data.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "verify/target_words.h"

namespace harpe::verifier {
namespace {

using launch::Kernel;
using launch::LaunchPlan;
using launch::Raise;
using launch::SignalId;

Diag unfit(const LaunchPlan& launches, std::size_t id, const std::string& problem) {
  return make_diag(DiagCode::V730,
                   {{"id", id}, {"rank", launches.signals[id].rank.value}, {"problem", problem}});
}

// Checks which launches raise and await the signals in data.
class UseCheck {
 public:
  explicit UseCheck(const LaunchPlan& launches)
      : launches_(launches), uses_(launches.signals.size()) {}

  Checked<Ok> run() {
    for (std::size_t id = 0; id < uses_.size(); ++id) {
      if (is_in_data(id)) HP_REQUIRE_OK(check_kind(id));
    }
    for (launch_ = 0; launch_ < launches_.launches.size(); ++launch_) {
      HP_REQUIRE_OK(check_launch(launches_.launches[launch_]));
    }
    for (std::size_t id = 0; id < uses_.size(); ++id) {
      if (!is_in_data(id)) continue;
      if (!uses_[id].is_raised) return unfit(launches_, id, "no fused store raises it");
      if (!uses_[id].awaiting) return unfit(launches_, id, "no addend waits for it");
    }
    return Ok{};
  }

 private:
  struct Use {
    bool is_raised = false;
    std::optional<std::pair<std::size_t, std::size_t>> awaiting;  // the launch and its kernel
  };

  [[nodiscard]] bool is_in_data(std::size_t id) const { return launches_.signals[id].is_in_data; }

  [[nodiscard]] std::string name() const { return "launch " + std::to_string(launch_); }

  [[nodiscard]] Checked<Ok> check_kind(std::size_t id) const {
    const launch::Signal& signal = launches_.signals[id];
    if (signal.kind != launch::SignalKind::Sync || signal.arrivals != 1) {
      return unfit(launches_, id, "it is no flag of a sync");
    }
    if (signal.is_posted) return unfit(launches_, id, "a proxy raises it");
    return Ok{};
  }

  // Refuses a use that is impossible for a signal in data.
  [[nodiscard]] Checked<Ok> refuse(SignalId signal, const std::string& problem) const {
    if (!is_in_data(signal.index())) return Ok{};
    return unfit(launches_, signal.index(), name() + " " + problem);
  }

  Checked<Ok> check_launch(const launch::Launch& launch) {
    for (const auto* const raises : {&launch.ready, &launch.pulled, &launch.raises}) {
      for (const Raise& raise : *raises) {
        HP_REQUIRE_OK(refuse(raise.signal, "raises it, and not one of its fused stores"));
      }
    }
    for (const SignalId signal : launch.awaits) {
      HP_REQUIRE_OK(refuse(signal, "awaits it before its first kernel"));
    }
    for (const auto& signal : {launch.all_ready, launch.all_pulled}) {
      if (signal) HP_REQUIRE_OK(refuse(*signal, "awaits it for a collective"));
    }
    for (std::size_t kernel = 0; kernel < launch.kernels.size(); ++kernel) {
      HP_REQUIRE_OK(check_kernel(launch.kernels[kernel], kernel));
    }
    return Ok{};
  }

  Checked<Ok> check_kernel(const Kernel& kernel, std::size_t id) {
    for (std::size_t store = 0; store < kernel.fused_stores.size(); ++store) {
      HP_REQUIRE_OK(check_store(kernel, static_cast<std::int32_t>(store)));
    }
    for (const launch::FusedCopy& copy : kernel.fused_copies) {
      if (copy.raises) HP_REQUIRE_OK(refuse(*copy.raises, "raises it by a fused copy"));
    }
    for (const launch::Arrival& arrival : kernel.arrivals) {
      if (arrival.when) HP_REQUIRE_OK(refuse(*arrival.when, "awaits it for an arrival"));
    }
    for (const launch::Panel& panel : kernel.panels) {
      for (const launch::Addend& addend : panel.addends) {
        if (!addend.when) continue;
        Use& use = uses_[addend.when->index()];
        const std::pair own(launch_, id);
        if (use.awaiting && *use.awaiting != own) {
          HP_REQUIRE_OK(refuse(*addend.when, "awaits it, and so does another kernel"));
        }
        use.awaiting = own;
      }
    }
    return Ok{};
  }

  Checked<Ok> check_store(const Kernel& kernel, std::int32_t store) {
    const Raise& raise = kernel.fused_stores[static_cast<std::size_t>(store)];
    Use& use = uses_[raise.signal.index()];
    if (use.is_raised) HP_REQUIRE_OK(refuse(raise.signal, "raises it once more"));
    use.is_raised = true;
    if (raise.adds > 0) HP_REQUIRE_OK(refuse(raise.signal, "adds to it as to a counter"));
    const bool adds = std::ranges::any_of(kernel.panels, [&](const launch::Panel& panel) {
      return panel.fused_store == store && panel.adds;
    });
    return adds ? refuse(raise.signal, "adds its panels to what is there") : Checked<Ok>(Ok{});
  }

  const LaunchPlan& launches_;
  std::vector<Use> uses_;  // per signal
  std::size_t launch_ = 0;
};

}  // namespace

class CellCheck {
 public:
  CellCheck(const LaunchPlan& launches, const Steps& steps, const Resolved& resolved,
            const Words& words, CellsInData& out)
      : launches_(launches),
        steps_(steps),
        resolved_(resolved),
        words_(words),
        out_(out),
        contents_(resolved.allocs.size()),
        is_read_(static_cast<std::size_t>(resolved.cell_count), false) {
    out_.tasks_ = steps.scope.tasks;
    out_.cells_.resize(static_cast<std::size_t>(resolved.cell_count));
  }

  Checked<Ok> run() {
    for (const bool reads : {false, true}) {
      for (std::size_t id = 0; id < launches_.signals.size(); ++id) {
        if (!launches_.signals[id].is_in_data) continue;
        HP_REQUIRE_OK(reads ? note_reads(id) : note_stores(id));
      }
    }
    for (std::size_t step = 0; step < steps_.scope.tasks; ++step) {
      for (const ResolvedRef& ref : resolved_.reads(step)) HP_REQUIRE_OK(check_touch(step, ref));
      for (const ResolvedRef& ref : resolved_.writes(step)) HP_REQUIRE_OK(check_touch(step, ref));
    }
    return Ok{};
  }

 private:
  struct Content {
    std::int32_t id = -1;
    std::size_t signal = 0;  // one of its signals
  };

  [[nodiscard]] Diag cannot(std::size_t id, std::size_t step, const std::string& verb,
                            const ResolvedRef& ref, std::int64_t block,
                            const std::string& problem) const {
    return unfit(launches_, id,
                 words_.task(static_cast<std::int64_t>(step)) + " " + verb + " " +
                     words_.block(ref.buffer, block) + " in " + words_.alloc(ref.alloc) + problem);
  }

  [[nodiscard]] CellsInData::Cell& cell_at(const ResolvedRef& ref, const Cell& cell) const {
    return out_.cells_[resolved_.cell_index(ref, cell)];
  }

  Checked<Ok> note_stores(std::size_t id) {
    for (const std::int32_t step : steps_.signals[id].raised) {
      const auto at = static_cast<std::size_t>(step);
      for (const ResolvedRef& ref : resolved_.writes(at)) {
        if (ref.count == 0) continue;
        const auto alloc = static_cast<std::size_t>(ref.alloc);
        const Alloc& own = steps_.plan.allocs[alloc];
        const std::int32_t block = resolved_.cells(ref).front().block;
        if (own.rank != launches_.signals[id].rank) {
          return cannot(id, at, "stores", ref, block, ", which is not on the rank that waits");
        }
        if (own.level == Level::Home) {
          return cannot(id, at, "stores", ref, block, ", which is the caller's");
        }
        if (!contents_[alloc]) contents_[alloc] = {.id = ref.content, .signal = id};
        for (const Cell& cell : resolved_.cells(ref)) {
          CellsInData::Cell& known = cell_at(ref, cell);
          if (known.signal >= 0) {
            return cannot(id, at, "stores", ref, cell.block, ", which another panel stores");
          }
          known = {.signal = static_cast<std::int32_t>(id), .writer = step};
        }
      }
    }
    return Ok{};
  }

  // Requires: note_stores of all signals.
  Checked<Ok> note_reads(std::size_t id) {
    for (const AwaitedReads& awaited : steps_.signals[id].reads) {
      const auto at = static_cast<std::size_t>(awaited.step);
      for (const ResolvedRef& ref : resolved_.reads(at).subspan(awaited.first, awaited.count)) {
        for (const Cell& cell : resolved_.cells(ref)) {
          CellsInData::Cell& known = cell_at(ref, cell);
          if (known.signal != static_cast<std::int32_t>(id)) {
            return cannot(id, at, "reads", ref, cell.block,
                          ", which its fused store does not store");
          }
          if (known.reader >= 0) {
            return cannot(id, at, "reads", ref, cell.block, " once more");
          }
          known.reader = awaited.step;
        }
      }
    }
    return Ok{};
  }

  // Requires: note_reads of all signals.
  Checked<Ok> check_touch(std::size_t step, const ResolvedRef& ref) {
    const std::optional<Content>& content = contents_[static_cast<std::size_t>(ref.alloc)];
    if (ref.count == 0 || !content) return Ok{};
    const bool is_read = ref.mode == WriteMode::Read;
    if (ref.content != content->id) {
      return cannot(content->signal, step, is_read ? "reads" : "stores", ref,
                    resolved_.cells(ref).front().block,
                    ", a slot that holds other blocks of the signal");
    }
    for (const Cell& cell : resolved_.cells(ref)) {
      const CellsInData::Cell& known = cell_at(ref, cell);
      if (known.signal < 0) continue;
      const auto id = static_cast<std::size_t>(known.signal);
      if (!is_read && known.reader < 0) {
        return cannot(id, step, "stores", ref, cell.block, ", and no addend that waits reads it");
      }
      const bool is_first = !is_read || !is_read_[resolved_.cell_index(ref, cell)];
      if (is_read) is_read_[resolved_.cell_index(ref, cell)] = true;
      const std::int32_t own = is_read ? known.reader : known.writer;
      if (own == static_cast<std::int32_t>(step) && is_first) continue;
      return cannot(id, step, is_read ? "reads" : "stores", ref, cell.block, " too");
    }
    return Ok{};
  }

  const LaunchPlan& launches_;
  const Steps& steps_;
  const Resolved& resolved_;
  const Words& words_;
  CellsInData& out_;
  std::vector<std::optional<Content>> contents_;  // per allocation: what its signals in data guard
  std::vector<bool> is_read_;  // per cell: check_touch found the step that reads it
};

Checked<Ok> check_signals_in_data(const LaunchPlan& launches) { return UseCheck(launches).run(); }

Checked<CellsInData> CellsInData::make(const LaunchPlan& launches, const Steps& steps,
                                       const Resolved& resolved, const Words& words) {
  CellsInData out;
  const bool is_any = std::ranges::any_of(launches.signals, &launch::Signal::is_in_data);
  if (is_any) HP_REQUIRE_OK(CellCheck(launches, steps, resolved, words, out).run());
  return out;
}

bool CellsInData::orders(std::size_t cell, std::int32_t writer, std::int32_t reader) const {
  const Cell& known = cells_[cell];
  const auto tasks = static_cast<std::int32_t>(tasks_);
  return known.signal >= 0 && known.writer == writer % tasks && known.reader == reader % tasks &&
         writer / tasks == reader / tasks;
}

Plan drop_signals_in_data(const Steps& steps) {
  Plan plan = steps.plan;
  plan.syncs.resize(steps.syncs_of_words);
  for (std::size_t id = steps.barriers_of_words; id < plan.barriers.size(); ++id) {
    plan.barriers[id] = {};
  }
  return plan;
}

}  // namespace harpe::verifier
