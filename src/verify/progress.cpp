#include "verify/progress.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/launch_signals.h"
#include "verify/clocks.h"
#include "verify/target_words.h"

namespace harpe::verifier {
namespace {

using launch::Kernel;

// The number of SMs of a target such as "h200 sms 132".
std::int64_t sms_of(const std::string& target) {
  const std::string word = " sms ";
  const std::size_t at = target.find(word);
  std::int64_t sms = 0;
  if (at == std::string::npos) return sms;
  const char* const digits = target.data() + at + word.size();
  (void)std::from_chars(digits, target.data() + target.size(), sms);
  return sms;
}

// The waits-for graph of one execution. Its nodes are the units of the order and, for each launch
// that waits inside, a node "on the SMs", which waits for what the launch awaits inside.
class Progress {
 public:
  Progress(const launch::LaunchPlan& launches, const Steps& steps, const Order& order,
           const Words& words)
      : launches_(launches),
        steps_(steps),
        order_(order),
        words_(words),
        capacity_(sms_of(launches.target)),
        waits_(launches.launches.size()),
        over_(launches.launches.size()),
        begun_(launches.launches.size()) {
    std::int32_t units = 0;
    for (const std::int32_t unit : order.sequence) units = std::max(units, unit + 1);
    edges_.resize(static_cast<std::size_t>(units));
  }

  Checked<Ok> run() {
    bool is_any = false;
    for (std::size_t id = 0; id < launches_.launches.size(); ++id) {
      const launch::Launch& launch = launches_.launches[id];
      waits_[id] = std::ranges::any_of(launch.kernels, launch::waits_inside);
      is_any = is_any || waits_[id];
      HP_REQUIRE_OK(check_held(id));
      if (waits_[id]) HP_REQUIRE_OK(check_alone(id));
    }
    if (!is_any) return Ok{};
    for (const std::int32_t unit : order_.sequence) add_unit(unit);
    add_tickets();
    if (const std::vector<std::size_t> circle = find_circle(); !circle.empty()) {
      return describe_tickets(circle);
    }
    find_candidates();
    if (candidates_.empty()) return Ok{};
    learn_order();
    for (const Conflict& each : candidates_) {
      const bool is_beside =
          !is_over(each.blocked, each.waiting) && !is_over(each.waiting, each.blocked);
      const bool needs_none =
          has_begun(each.blocked, each.waiting) && !needs_sm_behind_waits(each.blocked);
      if (is_beside && !needs_none) add_conflict(each);
    }
    if (const std::vector<std::size_t> circle = find_circle(); !circle.empty()) {
      return describe_conflict(circle);
    }
    return Ok{};
  }

 private:
  // `blocked` gets no SM while `waiting` runs.
  struct Conflict {
    std::size_t waiting;
    std::size_t blocked;
  };

  [[nodiscard]] std::int64_t held(std::size_t id) const {
    return capacity_ - launches_.launches[id].reserved_sms;
  }

  Checked<Ok> check_held(std::size_t id) const {
    const launch::Launch& launch = launches_.launches[id];
    std::int64_t copies = 0;
    for (const Kernel& kernel : launch.kernels) {
      copies = std::max<std::int64_t>(copies, kernel.copy_blocks);
    }
    const bool takes_sms = waits_[id] || launch.reserved_sms > 0 || copies > 0;
    if (held(id) > copies || (capacity_ == 0 && !takes_sms)) return Ok{};
    return make_diag(DiagCode::V712, {{"launch", id},
                                      {"rank", launch.rank.value},
                                      {"held", launch.reserved_sms + copies},
                                      {"capacity", capacity_}});
  }

  // On a shared GPU it is unknown which SMs the kernels of other ranks get.
  [[nodiscard]] Checked<Ok> check_alone(std::size_t id) const {
    if (!says(launches_.target, "shared")) return Ok{};
    return make_diag(DiagCode::V710, {{"launch", id},
                                      {"rank", launches_.launches[id].rank.value},
                                      {"held", capacity_},
                                      {"capacity", capacity_},
                                      {"blocked", "what other ranks launch on its GPU"},
                                      {"wanted", "some of them"},
                                      {"cycle", "ranks share GPUs in `" + launches_.target + "`"}});
  }

  // Whether the launch needs an SM after its own waits: for its kernels, or for one-warp kernels
  // that raise signals or wait for members.
  [[nodiscard]] bool needs_sm_behind_waits(std::size_t id) const {
    const launch::Launch& launch = launches_.launches[id];
    const bool by_engine = std::ranges::all_of(
        launch.kernels, [](const Kernel& kernel) { return kernel.name == "copy_engine"; });
    const bool raises = !launch.raises.empty() && !launch.raised_by_engine;
    return !by_engine || raises || launch.all_ready || launch.all_pulled;
  }
  [[nodiscard]] bool needs_sm(std::size_t id) const {
    return needs_sm_behind_waits(id) || !launches_.launches[id].awaits.empty();
  }

  [[nodiscard]] static bool is_exchange(const launch::Launch& launch) {
    return std::ranges::any_of(launch.kernels,
                               [](const Kernel& kernel) { return kernel.name == "nccl"; });
  }

  [[nodiscard]] std::size_t unit_of(std::int32_t step) const {
    return static_cast<std::size_t>(order_.unit_of(step));
  }

  void add_unit(std::int32_t unit) {
    std::vector<std::size_t>& edges = edges_[static_cast<std::size_t>(unit)];
    const auto add = [&](std::int32_t node) {
      for (const std::int32_t before : order_.before(node)) edges.push_back(unit_of(before));
    };
    if (order_.members(unit).empty()) add(unit);
    for (const std::int32_t member : order_.members(unit)) add(member);
  }

  // Orders the panels of a kernel as if one thread block did them all.
  void add_tickets() {
    for (std::size_t step = 1; step < steps_.scope.tasks; ++step) {
      const StepOrigin& own = steps_.origins[step];
      const StepOrigin& before = steps_.origins[step - 1];
      const bool is_next = is_of_panel(own) && is_of_panel(before) && own.launch == before.launch &&
                           own.kernel == before.kernel && own.part != before.part;
      if (!is_next) continue;
      const auto id = static_cast<std::int32_t>(step);
      edges_[unit_of(id)].push_back(unit_of(id - 1));
    }
  }

  static bool is_of_panel(const StepOrigin& origin) {
    return origin.kind == StepKind::Carry || origin.kind == StepKind::Meet ||
           origin.kind == StepKind::Addend || origin.kind == StepKind::Map ||
           origin.kind == StepKind::Store;
  }

  // Per launch: which launches of its rank are over, and which have finished their own waits, when
  // it begins.
  void learn_order() {
    std::vector<std::vector<std::size_t>> begins(steps_.scope.tasks);
    for (std::size_t id = 0; id < launches_.launches.size(); ++id) {
      begins[static_cast<std::size_t>(steps_.first[id])].push_back(id);
    }
    Clocks clocks(order_);
    for (const std::int32_t unit : order_.sequence) {
      for (const std::int32_t step : order_.members(unit)) {
        const Row& clock = clocks.start(step);
        if (static_cast<std::size_t>(step) >= steps_.scope.tasks) continue;
        for (const std::size_t id : begins[static_cast<std::size_t>(step)]) {
          for (const std::size_t other : rank_launches_[launches_.launches[id].rank.index()]) {
            const auto knows = [&](std::int32_t end) {
              return clock.at(order_.strand_of(end)) >= order_.strand_position_of(end);
            };
            if (knows(steps_.last[other])) over_[id].push_back(other);
            if (knows(steps_.first[other])) begun_[id].push_back(other);
          }
        }
      }
      if (order_.members(unit).empty()) (void)clocks.start(unit);
      clocks.finish(unit);
    }
  }

  [[nodiscard]] bool is_over(std::size_t launch, std::size_t at_start_of) const {
    return std::ranges::binary_search(over_[at_start_of], launch);
  }
  [[nodiscard]] bool has_begun(std::size_t launch, std::size_t at_start_of) const {
    return std::ranges::binary_search(begun_[at_start_of], launch);
  }

  // Pairs a launch that waits on the SMs and leaves none free with each launch that it keeps out,
  // except its direct predecessors and successors.
  void find_candidates() {
    rank_launches_.resize(static_cast<std::size_t>(words_.model().ranks));
    for (std::size_t id = 0; id < waits_.size(); ++id) {
      rank_launches_[launches_.launches[id].rank.index()].push_back(id);
    }
    const auto follows = [&](std::size_t later, std::size_t earlier) {
      const launch::LaunchId id(static_cast<std::int64_t>(earlier));
      return std::ranges::count(launches_.launches[later].after, id) > 0;
    };
    for (std::size_t waiting = 0; waiting < waits_.size(); ++waiting) {
      if (!waits_[waiting]) continue;
      const launch::Launch& launch = launches_.launches[waiting];
      for (const std::size_t other : rank_launches_[launch.rank.index()]) {
        const bool fits = launch.reserved_sms > 0 && !is_exchange(launches_.launches[other]);
        const bool is_ordered = launches_.launches[other].queue == launch.queue ||
                                follows(waiting, other) || follows(other, waiting);
        if (fits || is_ordered || !needs_sm(other)) continue;
        candidates_.push_back({.waiting = waiting, .blocked = other});
      }
    }
  }

  void add_conflict(const Conflict& conflict) {
    conflicts_.push_back(conflict);
    std::size_t node = edges_.size();
    for (const auto& [launch, known] : resident_) {
      if (launch == conflict.waiting) node = known;
    }
    if (node == edges_.size()) {
      resident_.emplace_back(conflict.waiting, node);
      edges_.emplace_back();
      for (std::size_t id = 0; id < steps_.signals.size(); ++id) {
        if (launches_.signals[id].kind == launch::SignalKind::Credit) continue;
        const auto is_inside = [&](std::int32_t step) {
          const StepOrigin& origin = steps_.origins[static_cast<std::size_t>(step)];
          return origin.launch.index() == conflict.waiting && is_of_panel(origin);
        };
        if (std::ranges::none_of(steps_.signals[id].awaited, is_inside)) continue;
        for (const std::int32_t step : steps_.signals[id].raised) {
          edges_[node].push_back(unit_of(step));
        }
      }
    }
    edges_[unit_of(steps_.first[conflict.blocked])].push_back(node);
  }

  // The nodes of a cycle, each waiting for the next; empty if there is none.
  [[nodiscard]] std::vector<std::size_t> find_circle() const {
    enum class State : std::uint8_t { New, Open, Done };
    std::vector<State> states(edges_.size(), State::New);
    std::vector<std::pair<std::size_t, std::size_t>> path;  // node, edges looked at
    for (std::size_t start = 0; start < edges_.size(); ++start) {
      if (states[start] != State::New) continue;
      path.assign(1, {start, 0});
      states[start] = State::Open;
      while (!path.empty()) {
        auto& [node, next] = path.back();
        if (next == edges_[node].size()) {
          states[node] = State::Done;
          path.pop_back();
          continue;
        }
        const std::size_t to = edges_[node][next++];
        if (states[to] == State::New) {
          states[to] = State::Open;
          path.emplace_back(to, 0);
        } else if (states[to] == State::Open) {
          const auto from =
              std::ranges::find(path, to, [](const auto& each) { return each.first; });
          std::vector<std::size_t> circle;
          for (auto at = from; at != path.end(); ++at) circle.push_back(at->first);
          return circle;
        }
      }
    }
    return {};
  }

  [[nodiscard]] std::string name_of(std::size_t node) const {
    for (const auto& [launch, resident] : resident_) {
      if (resident == node) return "launch " + std::to_string(launch) + " on the SMs";
    }
    const auto unit = static_cast<std::int32_t>(node);
    if (order_.members(unit).empty()) return "a signal";
    return words_.task(std::int64_t{order_.members(unit).front()});
  }

  // Starting at `first`.
  [[nodiscard]] std::string text_of(std::vector<std::size_t> circle, std::size_t first) const {
    std::ranges::rotate(circle, std::ranges::find(circle, first));
    std::vector<std::string> names;  // all steps of one panel have one name
    for (const std::size_t node : circle) {
      std::string name = name_of(node);
      if (names.empty() || names.back() != name) names.push_back(std::move(name));
    }
    std::string text = names.front();
    for (std::size_t i = 1; i < names.size(); ++i) {
      text += (i == 1 ? " waits for " : ", which waits for ") + names[i];
    }
    return text + ", which waits for the first";
  }

  // There is no cycle without tickets (V301).
  [[nodiscard]] Diag describe_tickets(const std::vector<std::size_t>& circle) const {
    std::size_t first = circle.front();
    for (const std::size_t node : circle) {
      const auto members = order_.members(static_cast<std::int32_t>(node));
      const bool is_panel =
          !members.empty() && is_of_panel(steps_.origins[steps_.scope.task(members.front())]);
      if (is_panel) first = node;
    }
    const auto step = order_.members(static_cast<std::int32_t>(first)).front();
    const launch::LaunchId id = steps_.origins[steps_.scope.task(step)].launch;
    return make_diag(DiagCode::V711, {{"launch", id.value},
                                      {"rank", launches_.launches[id.index()].rank.value},
                                      {"cycle", text_of(circle, first)}});
  }

  [[nodiscard]] Diag describe_conflict(const std::vector<std::size_t>& circle) const {
    Conflict found = conflicts_.front();
    std::size_t node = circle.front();
    for (const Conflict& conflict : conflicts_) {
      for (const auto& [launch, resident] : resident_) {
        const auto is_here = [&](std::size_t each) {
          return std::ranges::find(circle, each) != circle.end();
        };
        if (launch != conflict.waiting || !is_here(resident) ||
            !is_here(unit_of(steps_.first[conflict.blocked]))) {
          continue;
        }
        found = conflict;
        node = resident;
      }
    }
    const bool exchanges = is_exchange(launches_.launches[found.blocked]);
    return make_diag(DiagCode::V710, {{"launch", found.waiting},
                                      {"rank", launches_.launches[found.waiting].rank.value},
                                      {"held", held(found.waiting)},
                                      {"capacity", capacity_},
                                      {"blocked", "launch " + std::to_string(found.blocked)},
                                      {"wanted", exchanges ? "as many as NCCL takes" : "one"},
                                      {"cycle", text_of(circle, node)}});
  }

  const launch::LaunchPlan& launches_;
  const Steps& steps_;
  const Order& order_;
  const Words& words_;
  std::int64_t capacity_;
  std::vector<char> waits_;                      // per launch: whether it waits inside
  std::vector<std::vector<std::size_t>> over_;   // per launch: those over when it begins, ascending
  std::vector<std::vector<std::size_t>> begun_;  // per launch: those whose waits are over
  std::vector<std::vector<std::size_t>> rank_launches_;        // per rank
  std::vector<std::vector<std::size_t>> edges_;                // per node: what it waits for
  std::vector<std::pair<std::size_t, std::size_t>> resident_;  // launch: its node
  std::vector<Conflict> candidates_;
  std::vector<Conflict> conflicts_;
};

}  // namespace

Checked<Ok> check_progress(const launch::LaunchPlan& launches, const Steps& steps,
                           const Order& order, const Words& words) {
  return Progress(launches, steps, order, words).run();
}

}  // namespace harpe::verifier
