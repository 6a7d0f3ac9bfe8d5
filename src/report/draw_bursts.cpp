#include "report/draw_bursts.h"

#include <algorithm>
#include <string>

#include "sim/simulate.h"

namespace harpe {
namespace {

constexpr std::int64_t kColumns = 96;
constexpr Burst kDrawnBurst{.messages = 6, .destinations = 3, .bytes = 4096};

struct Drawn {
  const PutPolicy* policy = nullptr;
  ExchangeWorkload exchange;
  EngineRun run;
};

class Canvas {
 public:
  explicit Canvas(Picoseconds whole) : whole_(whole) {}

  // From one moment to another; at least one column wide.
  static void fill(std::string& row, std::int64_t first, std::int64_t last, char mark) {
    for (std::int64_t at = first; at < std::max(last, first + 1) && at < kColumns; ++at) {
      row[static_cast<std::size_t>(at)] = mark;
    }
  }
  [[nodiscard]] std::int64_t column(Picoseconds time) const {
    return time.value * kColumns / std::max<std::int64_t>(1, whole_.value);
  }

  [[nodiscard]] std::string draw(const Drawn& drawn) const {
    std::string queue(kColumns, ' ');
    std::string wire(kColumns, ' ');
    std::string seen(kColumns, ' ');
    Picoseconds free;
    for (std::size_t i = 0; i < drawn.exchange.roles.size(); ++i) {
      const Span& span = drawn.run.spans[i];
      const std::int64_t end = column(span.end);
      switch (drawn.exchange.roles[i]) {
        case ActivityRole::Post:
          fill(queue, column(span.begin), end, 'p');
          break;
        case ActivityRole::Signal:
          fill(queue, column(span.begin), end, 'w');
          break;
        case ActivityRole::Fence:
          fill(queue, column(free), end, 'F');
          break;
        case ActivityRole::Work:
          fill(wire, column(span.begin), end, '=');
          break;
        case ActivityRole::Order:
          fill(wire, end, end, '|');
          break;
        case ActivityRole::Count:
        case ActivityRole::Issue:
        case ActivityRole::Arrive:
        case ActivityRole::Join:
          break;
      }
      if (drawn.exchange.workload.activities[i].queue == 0) free = span.end;
    }
    for (const Dependency& edge : drawn.exchange.workload.dependencies) {
      if (edge.kind != WaitKind::Signal) continue;
      const Picoseconds when =
          drawn.run.spans[static_cast<std::size_t>(edge.before)].end + edge.delay;
      fill(seen, std::min(column(when), kColumns - 1), 0, '*');
    }
    std::string name(drawn.policy->name);
    name.resize(6, ' ');
    return name + "lane |" + queue + "|\n      wire |" + wire + "|\n      seen |" + seen + "|\n";
  }

 private:
  Picoseconds whole_;
};

}  // namespace

Checked<std::string> draw_bursts(const Machine& machine, const FabricQuestion& question) {
  std::string out;
  for (const std::int64_t nodes : question.nodes) {
    HP_TRY(const Fabric fabric, find_fabric(machine, nodes));
    FabricRuns runs(machine);
    std::vector<Drawn> all;
    Picoseconds longest;
    for (const PutPolicy* policy : question.policies) {
      if (nodes < 2 || !runs.has(*policy)) continue;
      Drawn drawn{
          .policy = policy, .exchange = build_burst(fabric, *policy, kDrawnBurst), .run = {}};
      drawn.run = run_workload(drawn.exchange.workload);
      longest = std::max(longest, drawn.run.total);
      all.push_back(std::move(drawn));
    }
    if (all.empty()) continue;
    HP_REQUIRE_OK(check_time(longest, "an exchange", machine));
    out += std::to_string(kDrawnBurst.messages) + " puts of " +
           std::to_string(static_cast<std::int64_t>(kDrawnBurst.bytes)) + " bytes to " +
           std::to_string(kDrawnBurst.destinations) + " GPUs, " + std::to_string(nodes) +
           " nodes; a line is " + std::to_string(longest.value / 1'000'000) +
           " us\np post, F drain, w word, = on the wire, | let go by the NIC, * seen\n\n";
    const Canvas canvas(longest);
    for (const Drawn& drawn : all) out += canvas.draw(drawn);
    out += "\n";
  }
  return out;
}

}  // namespace harpe
