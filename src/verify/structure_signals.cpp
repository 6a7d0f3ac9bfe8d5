#include <algorithm>
#include <tuple>
#include <vector>

#include "verify/structure.h"
#include "verify/words.h"

namespace harpe::verifier {
namespace {

// One signal of a rank's flag page and the task that waits for it. A flag has one signaller and one
// waiting task; a counter has one waiting task; a barrier's counter serves all its waiting tasks on
// the rank.
struct FlagUse {
  RankId rank;
  std::int32_t flag = -1;
  std::int64_t owner = 0;   // uses with equal owners may share the signal
  std::int64_t signal = 0;  // index of the sync, or of the barrier after all syncs
  TaskId waiter;

  [[nodiscard]] auto signal_word() const { return std::tuple(rank, flag); }
};

class SignalCheck {
 public:
  SignalCheck(const Plan& plan, const Model& model) : plan_(plan), words_(plan, model) {}

  Checked<Ok> add_syncs() {
    for (std::size_t id = 0; id < plan_.syncs.size(); ++id) {
      const Sync& sync = plan_.syncs[id];
      const RankId rank = words_.rank_of(sync.to.value);
      if (sync.kind == SyncKind::Event) {
        if (words_.rank_of(sync.from.value) == rank) continue;
        return make_diag(
            DiagCode::V240,
            {{"id", id}, {"from", words_.task(sync.from)}, {"to", words_.task(sync.to)}});
      }
      // Owners: tasks for counters, then one for each flag and each barrier.
      const auto signal = static_cast<std::int64_t>(id);
      const std::int64_t own = static_cast<std::int64_t>(plan_.tasks.size()) + signal;
      HP_REQUIRE_OK(add({.rank = rank,
                         .flag = sync.flag,
                         .owner = sync.kind == SyncKind::Counter ? sync.to.value : own,
                         .signal = signal,
                         .waiter = sync.to}));
    }
    return Ok{};
  }

  Checked<Ok> add_barriers() {
    for (std::size_t id = 0; id < plan_.barriers.size(); ++id) {
      const auto signal = static_cast<std::int64_t>(plan_.syncs.size() + id);
      for (const TaskId to : plan_.barriers[id].to) {
        HP_REQUIRE_OK(add({.rank = words_.rank_of(to.value),
                           .flag = plan_.barriers[id].flag,
                           .owner = static_cast<std::int64_t>(plan_.tasks.size()) + signal,
                           .signal = signal,
                           .waiter = to}));
      }
    }
    return Ok{};
  }

  Checked<Ok> check_shared() {
    std::ranges::sort(uses_, {},
                      [](const FlagUse& use) { return std::tuple(use.signal_word(), use.owner); });
    const auto clash = std::ranges::adjacent_find(uses_, [](const FlagUse& a, const FlagUse& b) {
      return a.signal_word() == b.signal_word() && a.owner != b.owner;
    });
    if (clash == uses_.end()) return Ok{};
    return make_diag(DiagCode::V241, {{"flag", clash->flag},
                                      {"rank", clash->rank.value},
                                      {"first", name(*clash)},
                                      {"second", name(*std::next(clash))}});
  }

 private:
  Checked<Ok> add(const FlagUse& use) {
    uses_.push_back(use);
    if (use.flag >= 0) return Ok{};
    return make_diag(DiagCode::V242, {{"what", name(use)}, {"flag", use.flag}});
  }

  [[nodiscard]] std::string name(const FlagUse& use) const {
    const auto signal = static_cast<std::size_t>(use.signal);
    if (signal >= plan_.syncs.size()) {
      return "barrier " + std::to_string(signal - plan_.syncs.size()) + " for " +
             words_.task(use.waiter);
    }
    return "sync " + std::to_string(signal) + " from " + words_.task(plan_.syncs[signal].from) +
           " to " + words_.task(use.waiter);
  }

  const Plan& plan_;
  Words words_;
  std::vector<FlagUse> uses_;
};

}  // namespace

Checked<Ok> check_signals(const Plan& plan, const Model& model) {
  SignalCheck check(plan, model);
  HP_REQUIRE_OK(check.add_syncs());
  HP_REQUIRE_OK(check.add_barriers());
  return check.check_shared();
}

}  // namespace harpe::verifier
