#include "verify/residency.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "verify/clocks.h"
#include "verify/launches.h"

namespace harpe::verifier {
namespace {

// While `waiting` holds its SMs and waits inside, `blocked` may not fit.
struct Conflict {
  std::size_t waiting;
  std::size_t blocked;
};

class Residency {
 public:
  Residency(const Plan& plan, const Words& words, const Order& order, std::int64_t sm_count,
            std::vector<Launch> launches)
      : plan_(plan),
        words_(words),
        order_(order),
        sm_count_(sm_count),
        launches_(std::move(launches)),
        waits_(launches_.size()),
        known_(launches_.size()) {
    queue_launches_.resize(plan.queues.size());
    rank_queues_.resize(static_cast<std::size_t>(plan.mesh.ranks()));
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      auto& queue = queue_launches_[static_cast<std::size_t>(launches_[i].queue)];
      if (queue.empty()) rank_queues_[launches_[i].rank.index()].push_back(launches_[i].queue);
      queue.push_back(i);
    }
  }

  Checked<Ok> run() {
    find_waits();
    if (std::ranges::none_of(waits_, [](const auto& waits) { return waits; })) return Ok{};
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      if (!waits_[i] || launches_[i].sms <= sm_count_) continue;
      return make_diag(DiagCode::V532, {{"rank", launches_[i].rank.value},
                                        {"waiting", name(i)},
                                        {"wanted", launches_[i].sms},
                                        {"capacity", sm_count_}});
    }
    learn_starts();
    std::vector<Conflict> conflicts;
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      if (waits_[i]) add_conflicts(i, conflicts);
    }
    if (conflicts.empty()) return Ok{};
    return check_circles(conflicts);
  }

 private:
  [[nodiscard]] std::string name(std::size_t launch) const {
    return name_of(launches_[launch], plan_, order_, words_);
  }
  [[nodiscard]] std::int32_t first_task(const Launch& launch) const {
    return order_.task_at(launch.queue, launch.begin);
  }
  [[nodiscard]] bool holds(const Launch& launch, std::int32_t node) const {
    if (!order_.is_task(node) || order_.queue_of(node) != launch.queue) return false;
    const std::int32_t at = order_.position_of(node);
    return launch.begin <= at && at < launch.end;
  }

  // Nodes that a launch may still wait for after it has got its SMs.
  [[nodiscard]] std::vector<std::int32_t> awaited_inside(const Launch& launch) const {
    std::vector<std::int32_t> nodes;
    for (std::int32_t at = launch.begin + 1; at < launch.end; ++at) {
      for (const std::int32_t before : order_.before(order_.task_at(launch.queue, at))) {
        if (!holds(launch, before)) nodes.push_back(before);
      }
    }
    return nodes;
  }

  void find_waits() {
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      const Launch& launch = launches_[i];
      const std::int32_t unit = order_.unit_of(first_task(launch));
      waits_[i] =
          launch.is_collective ? order_.members(unit).size() > 1 : !awaited_inside(launch).empty();
    }
  }

  // Per launch: what is over when it starts, on its rank's queues that use SMs.
  void learn_starts() {
    std::vector<std::int32_t> launch_of(plan_.tasks.size(), -1);
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      launch_of[static_cast<std::size_t>(first_task(launches_[i]))] = static_cast<std::int32_t>(i);
    }
    Clocks clocks(order_);
    for (const std::int32_t unit : order_.sequence) {
      for (const std::int32_t task : order_.members(unit)) {
        const Row& clock = clocks.start(task);
        const std::int32_t launch = launch_of[static_cast<std::size_t>(task)];
        if (launch >= 0) note_start(static_cast<std::size_t>(launch), clock);
      }
      if (order_.members(unit).empty()) (void)clocks.start(unit);  // a barrier
      clocks.finish(unit);
    }
  }

  void note_start(std::size_t launch, const Row& clock) {
    for (const std::int32_t queue : rank_queues_[launches_[launch].rank.index()]) {
      std::int32_t over = -1;  // position of the last task known to be over
      for (const std::size_t other : queue_launches_[static_cast<std::size_t>(queue)]) {
        const std::int32_t last = order_.task_at(queue, launches_[other].end - 1);
        if (clock.at(order_.strand_of(last)) < order_.strand_position_of(last)) break;
        over = launches_[other].end - 1;
      }
      known_[launch].push_back(over);
    }
  }

  [[nodiscard]] bool is_over(std::size_t launch, std::size_t at_start_of) const {
    const auto& queues = rank_queues_[launches_[launch].rank.index()];
    const auto queue = std::ranges::find(queues, launches_[launch].queue) - queues.begin();
    return known_[at_start_of][static_cast<std::size_t>(queue)] >= launches_[launch].end - 1;
  }

  // The SMs that must be free for the launch to progress: its whole budget if it waits or moves
  // data; one for a plain leaf, whose thread blocks come and go.
  [[nodiscard]] std::int64_t wanted(std::size_t launch) const {
    const bool plain = launches_[launch].kernel >= 0 && !waits_[launch];
    return plain ? 1 : launches_[launch].sms;
  }

  // Visits the launches of `queue` that may be resident together with `launch`.
  template <class Visit>
  void for_each_beside(std::size_t launch, std::int32_t queue, const Visit& visit) const {
    for (const std::size_t other : queue_launches_[static_cast<std::size_t>(queue)]) {
      if (is_over(other, launch)) continue;
      if (is_over(launch, other)) break;
      visit(other);
    }
  }

  void add_conflicts(std::size_t waiting, std::vector<Conflict>& conflicts) const {
    const Launch& launch = launches_[waiting];
    // per other queue: the most SMs that waiting launches hold meanwhile
    std::map<std::int32_t, std::int64_t> beside;
    for (const std::int32_t queue : rank_queues_[launch.rank.index()]) {
      if (queue == launch.queue) continue;
      for_each_beside(waiting, queue, [&](std::size_t other) {
        if (waits_[other]) beside[queue] = std::max(beside[queue], launches_[other].sms);
      });
    }
    for (const std::int32_t queue : rank_queues_[launch.rank.index()]) {
      if (queue == launch.queue) continue;
      std::int64_t held = launch.sms;
      for (const auto& [other, sms] : beside) held += other == queue ? 0 : sms;
      for_each_beside(waiting, queue, [&](std::size_t other) {
        if (held + wanted(other) > sm_count_) conflicts.push_back({waiting, other});
      });
    }
  }

  // The waits-for graph: units, and for each waiting launch a node "on the SMs", which waits for
  // what the launch awaits inside. A launch that does not fit beside it waits for that node.
  class Graph {
   public:
    explicit Graph(const Residency& from, const std::vector<Conflict>& conflicts)
        : from_(from), order_(from.order_) {
      std::int32_t units = 0;
      for (const std::int32_t unit : order_.sequence) units = std::max(units, unit + 1);
      edges_.resize(static_cast<std::size_t>(units));
      for (const Conflict& conflict : conflicts) {
        const auto [resident, fresh] = resident_.try_emplace(conflict.waiting, edges_.size());
        if (fresh) edges_.emplace_back();
        const std::int32_t start = from.first_task(from.launches_[conflict.blocked]);
        blocked_[start].push_back(static_cast<std::int32_t>(resident->second));
      }
      for (const std::int32_t unit : order_.sequence) add_unit(unit);
      for (const auto& [launch, node] : resident_) add_resident(launch, edges_[node]);
    }

    [[nodiscard]] const std::map<std::size_t, std::size_t>& resident() const { return resident_; }

    // A path from the node back to itself; empty if there is none.
    [[nodiscard]] std::vector<std::size_t> circle(std::size_t start) const {
      std::vector<std::int64_t> came_from(edges_.size(), -1);
      std::vector<std::size_t> found = {start};
      for (std::size_t next = 0; next < found.size(); ++next) {
        for (const std::int32_t to : edges_[found[next]]) {
          const auto node = static_cast<std::size_t>(to);
          if (came_from[node] >= 0) continue;
          came_from[node] = static_cast<std::int64_t>(found[next]);
          if (node == start) return path(came_from, start);
          found.push_back(node);
        }
      }
      return {};
    }

   private:
    static std::vector<std::size_t> path(const std::vector<std::int64_t>& came_from,
                                         std::size_t start) {
      std::vector<std::size_t> nodes = {start};
      do {
        nodes.push_back(static_cast<std::size_t>(came_from[nodes.back()]));
      } while (nodes.back() != start);
      std::ranges::reverse(nodes);
      return nodes;
    }

    void add_start(std::int32_t node, std::vector<std::int32_t>& edges) const {
      for (const std::int32_t before : order_.before(node)) edges.push_back(order_.unit_of(before));
      const auto blocked = blocked_.find(node);
      if (blocked == blocked_.end()) return;
      edges.insert(edges.end(), blocked->second.begin(), blocked->second.end());
    }

    void add_unit(std::int32_t unit) {
      std::vector<std::int32_t>& edges = edges_[static_cast<std::size_t>(unit)];
      if (order_.members(unit).empty()) add_start(unit, edges);
      for (const std::int32_t member : order_.members(unit)) add_start(member, edges);
    }

    void add_resident(std::size_t index, std::vector<std::int32_t>& edges) const {
      const Launch& launch = from_.launches_[index];
      if (!launch.is_collective) {
        for (const std::int32_t node : from_.awaited_inside(launch)) {
          edges.push_back(order_.unit_of(node));
        }
        return;
      }
      const std::int32_t own = from_.first_task(launch);
      for (const std::int32_t member : order_.members(order_.unit_of(own))) {
        if (member != own) add_start(member, edges);
      }
    }

    const Residency& from_;
    const Order& order_;
    std::vector<std::vector<std::int32_t>> edges_;
    std::map<std::size_t, std::size_t> resident_;  // launch: its node
    // by first task: the nodes that keep it out
    std::map<std::int32_t, std::vector<std::int32_t>> blocked_;
  };

  // Every cycle contains such a node, since there is no cycle without them (V301).
  Checked<Ok> check_circles(const std::vector<Conflict>& conflicts) const {
    const Graph graph(*this, conflicts);
    std::vector<std::size_t> shortest;
    std::size_t waiting = 0;
    for (const auto& [launch, node] : graph.resident()) {
      std::vector<std::size_t> circle = graph.circle(node);
      if (circle.empty() || (!shortest.empty() && circle.size() >= shortest.size())) continue;
      shortest = std::move(circle);
      waiting = launch;
    }
    if (shortest.empty()) return Ok{};
    return describe(graph, shortest, waiting);
  }

  [[nodiscard]] Diag describe(const Graph& graph, const std::vector<std::size_t>& circle,
                              std::size_t waiting) const {
    const auto name_node = [&](std::size_t node) -> std::string {
      for (const auto& [launch, resident] : graph.resident()) {
        if (resident == node) return name(launch);
      }
      const auto unit = static_cast<std::int32_t>(node);
      if (!order_.members(unit).empty()) {
        return words_.task(std::int64_t{order_.members(unit).front()});
      }
      return "barrier " + std::to_string(node - plan_.tasks.size());
    };
    std::string text = "it";
    for (std::size_t i = 1; i + 1 < circle.size(); ++i) {
      text += (i == 1 ? " waits for " : ", which waits for ") + name_node(circle[i]);
    }
    const std::size_t blocked = blocked_launch(circle[circle.size() - 2], waiting);
    return make_diag(DiagCode::V530, {{"rank", launches_[waiting].rank.value},
                                      {"waiting", name(waiting)},
                                      {"held", launches_[waiting].sms},
                                      {"capacity", sm_count_},
                                      {"blocked", name(blocked)},
                                      {"wanted", wanted(blocked)},
                                      {"cycle", text}});
  }

  // The launch of the unit that does not fit beside `waiting`.
  [[nodiscard]] std::size_t blocked_launch(std::size_t unit, std::size_t waiting) const {
    std::size_t found = waiting;
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      const bool of_unit =
          order_.unit_of(first_task(launches_[i])) == static_cast<std::int32_t>(unit);
      if (of_unit && launches_[i].rank == launches_[waiting].rank) found = i;
    }
    return found;
  }

  const Plan& plan_;
  const Words& words_;
  const Order& order_;
  std::int64_t sm_count_;
  std::vector<Launch> launches_;
  std::vector<char> waits_;                               // per launch: whether it waits inside
  std::vector<std::vector<std::int32_t>> known_;          // per launch: see note_start
  std::vector<std::vector<std::size_t>> queue_launches_;  // per queue
  std::vector<std::vector<std::int32_t>> rank_queues_;    // per rank: those that use SMs
};

}  // namespace

Checked<Ok> check_residency(const Plan& plan, const Words& words, const Order& order,
                            std::int64_t sm_count) {
  HP_TRY(std::vector<Launch> launches, find_launches(plan, order, words, sm_count));
  return Residency(plan, words, order, sm_count, std::move(launches)).run();
}

}  // namespace harpe::verifier
