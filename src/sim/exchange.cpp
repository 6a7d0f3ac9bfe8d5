#include "sim/exchange.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "leaves/leaf.h"
#include "machine/rates.h"
#include "sim/simulate.h"
#include "support/check.h"

namespace harpe {
namespace {

constexpr std::array kPolicies = {
    PutPolicy{"puts", "puts without signals, the reference for the other policies", Via::Proxy,
              std::nullopt},
    PutPolicy{"put", "a drain behind every put, then its word (NVSHMEM's proxy)", Via::Proxy,
              Fence::PerPut},
    PutPolicy{"dest", "a drain per destination, then its words (decoupled signalling)", Via::Proxy,
              Fence::PerDestination},
    PutPolicy{"nic", "every word ordered by the NIC", Via::Proxy, Fence::NicOrdered},
    PutPolicy{"batch", "one word per destination ordered by the NIC, the others behind it (both)",
              Via::Proxy, Fence::Batched},
    PutPolicy{"epoch", "one drain for all destinations, then all words", Via::Proxy,
              Fence::OneQuiet},
    PutPolicy{"imm", "immediate data, which the receiver's proxy counts", Via::Proxy,
              Fence::Immediate},
    PutPolicy{"gpu", "posted by a kernel, put and word on one connection", Via::Ibgda,
              Fence::NicOrdered},
};

constexpr std::int64_t kTileRows = 128;    // rows that are computed and sent back as one tile
constexpr std::int64_t kMostTiles = 64;    // tiles of one GPU's rows for one expert
constexpr std::int64_t kTilesAtATime = 8;  // tiles that share a GPU's SMs equally
constexpr double kElementBytes = 2;        // bf16

// An offset between two GPUs: `node` nodes and `gpu` GPUs further.
struct Offset {
  std::int64_t node = 0;
  std::int64_t gpu = 0;
};

// All GPUs, or one GPU that represents them all.
class Exchange {
 public:
  Exchange(const Fabric& fabric, const PutPolicy& policy, Stand stand)
      : fabric_(fabric),
        machine_(*fabric.machine),
        policy_(policy),
        stand_(stand),
        map_(map_resources(machine_, fabric.ranks())) {
    out_.workload.resources = map_.list;
    out_.workload.queues = static_cast<std::int32_t>(2 * standing());
    out_.workload.servers.resize(static_cast<std::size_t>(out_.workload.queues), 0);
    for (std::int64_t rank = 0; rank < standing(); ++rank) {
      const auto poster =
          policy.via == Via::Proxy ? PutQueue::Poster::Proxy : PutQueue::Poster::Kernel;
      queues_.emplace_back(machine_, map_,
                           PutQueue::Options{.rank = RankId(rank),
                                             .queue = static_cast<std::int32_t>(2 * rank),
                                             .poster = poster,
                                             .counted = true});
      tiles_.push_back(static_cast<std::int32_t>(2 * rank + 1));
      if (stand == Stand::One) break;
    }
  }

  [[nodiscard]] std::int64_t standing() const { return stand_ == Stand::One ? 1 : fabric_.ranks(); }
  // The GPU at this offset from `from`, and the GPU from which `to` is at this offset.
  [[nodiscard]] RankId beyond(RankId from, const Offset& offset) const {
    const std::int64_t node = (from.value / fabric_.gpus + offset.node) % fabric_.nodes;
    const std::int64_t gpu = (from.value % fabric_.gpus + offset.gpu) % fabric_.gpus;
    return RankId(node * fabric_.gpus + gpu);
  }
  [[nodiscard]] RankId before(RankId to, const Offset& offset) const {
    return beyond(to, {fabric_.nodes - offset.node, fabric_.gpus - offset.gpu});
  }
  // The index of the simulated GPU that represents `rank`.
  [[nodiscard]] std::size_t image(RankId rank) const {
    return stand_ == Stand::One ? 0 : rank.index();
  }

  // The other GPUs, nearest node first. Each node is visited from the own position on, so that no
  // two GPUs send to the same one.
  [[nodiscard]] std::vector<Offset> others_beyond_node() const {
    std::vector<Offset> offsets;
    for (std::int64_t node = 1; node < fabric_.nodes; ++node) {
      for (std::int64_t gpu = 0; gpu < fabric_.gpus; ++gpu) offsets.push_back({node, gpu});
    }
    return offsets;
  }
  [[nodiscard]] std::vector<Offset> others_in_node() const {
    std::vector<Offset> offsets;
    for (std::int64_t gpu = 1; gpu < fabric_.gpus; ++gpu) offsets.push_back({0, gpu});
    return offsets;
  }

  std::int32_t add(Activity activity, std::int32_t queue, ActivityRole role) {
    activity.queue = queue;
    if (stand_ == Stand::One) take_for_all(activity);
    out_.workload.activities.push_back(std::move(activity));
    out_.roles.push_back(role);
    return static_cast<std::int32_t>(out_.roles.size()) - 1;
  }
  void depend(std::int32_t before, std::int32_t after, Picoseconds delay,
              WaitKind kind = WaitKind::Event) {
    out_.workload.dependencies.push_back({before, after, kind, delay});
  }

  // Adds a put behind `ready` and returns its number.
  std::int32_t put(RankId from, RankId to, double bytes, std::int32_t ready) {
    const auto number = static_cast<std::int32_t>(posted_.size());
    const Activity flight = transfer_activity(
        machine_, map_,
        {.via = print(policy_.via), .from = from, .to = to, .bytes = bytes, .driver = from});
    posted_.push_back(queue_of(from).post(
        {.put = number, .to = to, .level = fabric_.level, .flight = flight, .fence = policy_.fence},
        writer_));
    if (ready >= 0) depend(ready, posted_.back().post, {});
    return number;
  }
  void end_batch(RankId from, RankId to) { queue_of(from).end_batch(to, writer_); }
  void end_batches(RankId from) { queue_of(from).end_batches(writer_); }
  // `after` waits until `to` sees the put of `from`: its signal, or the put itself if it has none.
  void arrives(std::int32_t number, RankId from, RankId to, std::int32_t after) {
    depend(queue_of(from).signal_of(number), after, signal_delay(machine_, from, to),
           WaitKind::Signal);
  }

  [[nodiscard]] PutQueue& queue_of(RankId rank) { return queues_[image(rank)]; }
  [[nodiscard]] std::int32_t tiles_of(RankId rank) const { return tiles_[image(rank)]; }
  void serve_tiles(RankId rank, std::int32_t servers) {
    out_.workload.servers[static_cast<std::size_t>(tiles_of(rank))] = servers;
  }
  [[nodiscard]] const Machine& machine() const { return machine_; }
  [[nodiscard]] const ResourceMap& map() const { return map_; }
  [[nodiscard]] const Fabric& fabric() const { return fabric_; }
  [[nodiscard]] ExchangeWorkload take() { return std::move(out_); }
  ExchangeWorkload& out() { return out_; }

 private:
  // What it uses of other GPUs' resources, other GPUs use of its own.
  void take_for_all(Activity& activity) const {
    std::vector<Use> uses;
    std::swap(uses, activity.uses);
    for (const Use& use : uses) {
      const Resource& resource = map_.list[static_cast<std::size_t>(use.resource)];
      add_use(activity, find_resource(map_, resource.kind, RankId(0), resource.level), use.rate);
    }
  }

  const Fabric& fabric_;
  const Machine& machine_;
  const PutPolicy& policy_;
  Stand stand_;
  ResourceMap map_;
  ExchangeWorkload out_;
  std::vector<PutQueue> queues_;     // per simulated GPU
  std::vector<std::int32_t> tiles_;  // queues
  std::vector<PutQueue::Posted> posted_;
  PutWriter writer_ = {
      .add = [this](Activity activity, std::int32_t queue, ActivityRole role,
                    std::int32_t) { return add(std::move(activity), queue, role); },
      .depend = [this](std::int32_t first, std::int32_t second,
                       Picoseconds delay) { depend(first, second, delay); }};
};

// Dispatch, tiles and combine of every GPU.
class Layer {
 public:
  // `order`: the order in which a GPU's tiles end; empty if it is unknown.
  Layer(Exchange& exchange, const ExpertLayer& layer, std::vector<std::size_t> order)
      : exchange_(exchange), layer_(layer), fabric_(exchange.fabric()), order_(std::move(order)) {
    experts_ = std::max<std::int64_t>(1, layer.experts / fabric_.ranks());
    parts_ = std::min((layer.rows() + kTileRows - 1) / kTileRows, kMostTiles);
    for (const auto& others : {exchange.others_beyond_node(), exchange.others_in_node()}) {
      offsets_.insert(offsets_.end(), others.begin(), others.end());
    }
    offsets_.push_back({});
    tile_bytes_ = static_cast<double>(layer.rows()) * row_bytes() / static_cast<double>(parts_);
    if (order_.empty()) {
      order_.resize(offsets_.size() * static_cast<std::size_t>(experts_ * parts_));
      std::iota(order_.begin(), order_.end(), 0);
    }
    pack_ = part_of(memory_leaf(print(Leaf::GatherRows), 2), static_cast<double>(offsets_.size()));
    add_ = part_of(memory_leaf(print(Leaf::CombineRows), 1), pairs() * static_cast<double>(parts_));
    tile_ = part_of(products(), pairs() * static_cast<double>(parts_));
  }

  void build() {
    const std::int64_t ranks = exchange_.standing();
    sent_.resize(static_cast<std::size_t>(ranks));
    tiles_.resize(static_cast<std::size_t>(ranks));
    back_.resize(static_cast<std::size_t>(ranks));
    for (std::int64_t rank = 0; rank < ranks; ++rank) dispatch(RankId(rank));
    for (std::int64_t rank = 0; rank < ranks; ++rank) compute(RankId(rank));
    for (std::int64_t rank = 0; rank < ranks; ++rank) collect(RankId(rank));
    exchange_.out().tiles = tiles_.front();
  }

 private:
  // How data arrives from another GPU: by a put, or by the activity that stores it.
  struct Sent {
    std::int32_t put = -1;
    std::int32_t stored = -1;
  };

  [[nodiscard]] double pairs() const {
    return static_cast<double>(experts_ * static_cast<std::int64_t>(offsets_.size()));
  }
  [[nodiscard]] double row_bytes() const {
    return static_cast<double>(layer_.hidden) * kElementBytes;
  }

  // A leaf over all of a GPU's work, on all its SMs.
  [[nodiscard]] Activity leaf(std::string_view name, const LeafShape& shape) const {
    Activity activity = compute_activity(exchange_.machine(), exchange_.map(), RankId(0),
                                         {.leaf = name, .dtype = "bf16", .shape = shape});
    activity.start = {};  // one kernel does everything
    return activity;
  }
  [[nodiscard]] Activity memory_leaf(std::string_view name, double passes) const {
    const double rows = pairs() * static_cast<double>(layer_.rows());
    return leaf(name, {.bytes = passes * rows * row_bytes()});
  }
  // The GEMMs: up and gate, then down. Each is one problem per expert and sending GPU.
  [[nodiscard]] Activity products() {
    const auto hidden = static_cast<double>(layer_.hidden);
    const auto inter = static_cast<double>(layer_.inter);
    const double weights = static_cast<double>(experts_) * hidden * inter * kElementBytes;
    const auto product = [&](double columns, double depth, double matrices) {
      LeafShape shape{.batch = pairs(),
                      .rows = static_cast<double>(layer_.rows()),
                      .columns = columns,
                      .depth = depth};
      shape.flops = 2 * shape.batch * shape.rows * columns * depth;
      shape.bytes =
          matrices * weights + shape.batch * shape.rows * (columns + depth) * kElementBytes;
      return leaf(print(Leaf::Matmul), shape);
    };
    Activity both = product(2 * inter, hidden, 2);
    const Activity down = product(hidden, inter, 1);
    const double seconds = both.work.seconds() + down.work.seconds();
    exchange_.out().tile_seconds = seconds;
    for (Use& use : both.uses) {  // units of both over the time of both
      const Resource& resource = exchange_.map().list[static_cast<std::size_t>(use.resource)];
      if (resource.kind == ResourceKind::Sm) continue;
      double units = use.rate * both.work.seconds();
      for (const Use& other : down.uses) {
        if (other.resource == use.resource) units += other.rate * down.work.seconds();
      }
      use.rate = units / seconds;
    }
    both.work += down.work;
    return both;
  }
  // One of `parts` equal parts, on its share of the SMs.
  [[nodiscard]] static Activity part_of(Activity whole, double parts) {
    const auto share = static_cast<double>(kTilesAtATime);
    whole.work = std::max(Picoseconds(1), whole.work.scaled(share, parts));
    for (Use& use : whole.uses) use.rate /= share;
    return whole;
  }
  [[nodiscard]] std::int32_t add_tile(RankId rank, const Activity& tile) {
    Activity activity = tile;
    for (Use& use : activity.uses) {
      const Resource& resource = exchange_.map().list[static_cast<std::size_t>(use.resource)];
      use.resource = find_resource(exchange_.map(), resource.kind, rank, resource.level);
    }
    return exchange_.add(std::move(activity), exchange_.tiles_of(rank), ActivityRole::Work);
  }

  // The kernel itself stores into the memory of a GPU of the same node.
  [[nodiscard]] std::int32_t store(RankId from, RankId to, double bytes, std::int32_t ready) {
    const Machine& machine = exchange_.machine();
    const bool bulk = find_transport(machine, "tma", 0) != nullptr;
    Activity activity = transfer_activity(
        machine, exchange_.map(),
        {.via = bulk ? "tma" : "sm", .from = from, .to = to, .bytes = bytes, .driver = from});
    activity.start = {};
    std::erase_if(activity.uses, [&](const Use& use) {
      return exchange_.map().list[static_cast<std::size_t>(use.resource)].kind == ResourceKind::Sm;
    });
    const std::int32_t stored = exchange_.add(std::move(activity), kNoQueue, ActivityRole::Work);
    exchange_.depend(ready, stored, {});
    return stored;
  }

  [[nodiscard]] Sent send(RankId from, RankId to, const Offset& offset, double bytes,
                          std::int32_t ready) {
    Sent sent;
    if (from == to) {
      sent.stored = ready;
    } else if (offset.node == 0) {
      sent.stored = store(from, to, bytes, ready);
    } else {
      sent.put = exchange_.put(from, to, bytes, ready);
    }
    return sent;
  }
  void receive(const Sent& sent, RankId from, RankId to, std::int32_t after) {
    if (sent.put >= 0) {
      exchange_.arrives(sent.put, from, to, after);
    } else if (from == to) {
      exchange_.depend(sent.stored, after, {});
    } else {
      exchange_.depend(sent.stored, after, signal_delay(exchange_.machine(), from, to),
                       WaitKind::Signal);
    }
  }

  // Rows for other nodes go first, because they take longest.
  void dispatch(RankId rank) {
    exchange_.serve_tiles(rank, static_cast<std::int32_t>(kTilesAtATime));
    Activity launch = launch_activity(exchange_.machine());
    const std::int32_t begun = exchange_.add(std::move(launch), kNoQueue, ActivityRole::Issue);
    for (const Offset& offset : offsets_) {
      const std::int32_t packed = add_tile(rank, pack_);
      exchange_.depend(begun, packed, {});
      const RankId to = exchange_.beyond(rank, offset);
      for (std::int64_t expert = 0; expert < experts_; ++expert) {
        const double bytes = static_cast<double>(layer_.rows()) * row_bytes();
        sent_[exchange_.image(rank)].push_back(send(rank, to, offset, bytes, packed));
      }
      exchange_.end_batch(rank, to);
    }
    exchange_.end_batches(rank);
  }

  [[nodiscard]] std::size_t pair_at(std::size_t offset, std::int64_t expert) const {
    return offset * static_cast<std::size_t>(experts_) + static_cast<std::size_t>(expert);
  }

  // Computes the tiles of all arrived rows, then sends results back in the order in which tiles
  // end.
  void compute(RankId rank) {
    std::vector<std::int32_t>& tiles = tiles_[exchange_.image(rank)];
    for (std::size_t at = 0; at < offsets_.size(); ++at) {
      const RankId from = exchange_.before(rank, offsets_[at]);
      for (std::int64_t expert = 0; expert < experts_; ++expert) {
        const Sent& sent = sent_[exchange_.image(from)][pair_at(at, expert)];
        for (std::int64_t part = 0; part < parts_; ++part) {
          tiles.push_back(add_tile(rank, tile_));
          receive(sent, from, rank, tiles.back());
        }
      }
    }
    back_[exchange_.image(rank)].resize(tiles.size());
    const auto of_one = static_cast<std::size_t>(experts_ * parts_);
    std::vector<std::size_t> left(offsets_.size(), of_one);
    for (const std::size_t tile : order_) {
      const std::size_t at = tile / of_one;
      const RankId to = exchange_.before(rank, offsets_[at]);
      back_[exchange_.image(rank)][tile] = send(rank, to, offsets_[at], tile_bytes_, tiles[tile]);
      if (--left[at] == 0) exchange_.end_batch(rank, to);
    }
    exchange_.end_batches(rank);
  }

  void collect(RankId rank) {
    for (std::size_t at = 0; at < offsets_.size(); ++at) {
      const RankId by = exchange_.beyond(rank, offsets_[at]);
      for (std::int64_t expert = 0; expert < experts_; ++expert) {
        for (std::int64_t part = 0; part < parts_; ++part) {
          const std::size_t index = pair_at(at, expert) * static_cast<std::size_t>(parts_) +
                                    static_cast<std::size_t>(part);
          receive(back_[exchange_.image(by)][index], by, rank, add_tile(rank, add_));
        }
      }
    }
  }

  Exchange& exchange_;
  const ExpertLayer& layer_;
  const Fabric& fabric_;
  std::int64_t experts_ = 1;     // per GPU
  std::int64_t parts_ = 1;       // tiles of one GPU's rows for one expert
  std::vector<Offset> offsets_;  // to all GPUs, in sending order
  double tile_bytes_ = 0;
  std::vector<std::size_t> order_;
  Activity pack_, tile_, add_;
  // Per simulated GPU.
  std::vector<std::vector<Sent>> sent_, back_;
  std::vector<std::vector<std::int32_t>> tiles_;
};

// The order in which the first GPU's tiles end.
std::vector<std::size_t> order_of(const ExchangeWorkload& exchange) {
  const EngineRun run = run_workload(exchange.workload);
  std::vector<std::size_t> order(exchange.tiles.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t tile) {
    return run.spans[static_cast<std::size_t>(exchange.tiles[tile])].end;
  });
  return order;
}

}  // namespace

std::span<const PutPolicy> all_put_policies() { return kPolicies; }

const PutPolicy* find_put_policy(std::string_view name) {
  const auto found = std::ranges::find(kPolicies, name, &PutPolicy::name);
  return found == kPolicies.end() ? nullptr : &*found;
}

std::int64_t ExpertLayer::rows() const {
  return std::max<std::int64_t>(1, tokens * topk / experts);
}

Checked<Fabric> find_fabric(const Machine& machine, std::int64_t nodes) {
  std::int64_t inner = 1;
  for (std::size_t level = 0; level < machine.levels.size(); ++level) {
    if (find_transport(machine, "proxy", static_cast<int>(level)) != nullptr) {
      const Fabric fabric{&machine, static_cast<int>(level), nodes, inner};
      HP_REQUIRE_OK(check_ranks(Mesh{"fabric", {{"rank", fabric.ranks()}}}, machine));
      return fabric;
    }
    inner *= machine.levels[level].size;
  }
  return make_diag(DiagCode::M118,
                   {{"machine", machine.name},
                    {"via", "proxy"},
                    {"level", machine.levels.empty() ? "none" : machine.levels.back().name},
                    {"from", 0},
                    {"to", inner - 1},
                    {"known", "none that posts to a NIC"}});
}

ExchangeWorkload build_burst(const Fabric& fabric, const PutPolicy& policy, const Burst& burst,
                             Stand stand) {
  Exchange exchange(fabric, policy, stand);
  const std::vector<Offset> offsets = exchange.others_beyond_node();
  const auto count = std::min(burst.destinations, static_cast<std::int64_t>(offsets.size()));
  std::vector<std::pair<std::int32_t, RankId>> puts;
  for (std::int64_t rank = 0; rank < exchange.standing(); ++rank) {
    const RankId from(rank);
    const std::size_t first = puts.size();
    for (std::int64_t message = 0; message < burst.messages; ++message) {
      const auto at = static_cast<std::size_t>(message * count / burst.messages);
      const RankId to = exchange.beyond(from, offsets[at]);
      if (puts.size() > first && puts.back().second != to) {
        exchange.end_batch(from, puts.back().second);
      }
      puts.emplace_back(exchange.put(from, to, burst.bytes, -1), to);
    }
    exchange.end_batches(from);
    const std::int32_t seen = exchange.add({}, kNoQueue, ActivityRole::Join);
    for (std::size_t i = first; i < puts.size(); ++i) {
      exchange.arrives(puts[i].first, from, puts[i].second, seen);
    }
  }
  return exchange.take();
}

ExchangeWorkload build_layer(const Fabric& fabric, const PutPolicy& policy,
                             const ExpertLayer& layer, Stand stand) {
  // A queue takes puts in a fixed order, which tiles determine: a first run finds it.
  std::vector<std::size_t> order;
  {
    Exchange first(fabric, policy, Stand::One);
    Layer(first, layer, {}).build();
    order = order_of(first.take());
  }
  Exchange exchange(fabric, policy, stand);
  Layer(exchange, layer, std::move(order)).build();
  return exchange.take();
}

ExchangeTimes run_exchange(const ExchangeWorkload& exchange) {
  const EngineRun run = run_workload(exchange.workload);
  ExchangeTimes times{.total = run.total, .fences = {}, .busy = 0};
  for (std::size_t i = 0; i < exchange.roles.size(); ++i) {
    if (exchange.roles[i] != ActivityRole::Fence) continue;
    // From when its queue reached it until it released the queue.
    Picoseconds came;
    for (std::size_t before = i; before-- > 0;) {
      if (exchange.workload.activities[before].queue != exchange.workload.activities[i].queue) {
        continue;
      }
      came = run.spans[before].end;
      break;
    }
    if (exchange.workload.activities[i].queue == 0) times.fences += run.spans[i].end - came;
  }
  times.busy = run.total.value == 0 ? 0 : exchange.tile_seconds / run.total.seconds();
  return times;
}

}  // namespace harpe
