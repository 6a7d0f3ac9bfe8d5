#include "search/outline_moves.h"

#include <algorithm>

#include "machine/rates.h"
#include "search/regions.h"

namespace harpe {
namespace {

OutlineQueue queue_of_via(Via via) {
  switch (via) {
    case Via::Ce:
      return kCeQueue;
    case Via::Tma:
      return kTmaQueue;
    case Via::Nccl:
      return kNcclQueue;
    case Via::Sm:
      return kSmQueue;
    default:
      return kProxyQueue;
  }
}

class MoveMaker {
 public:
  MoveMaker(const Problem& problem, const Machine& machine, const Candidate& candidate,
            const std::vector<CandidateLoop>& loops)
      : problem_(problem), machine_(machine), candidate_(candidate), loops_(loops) {}

  OutlineMoves make() {
    out_.memory_bytes = problem_.side_bytes;
    add_moves();
    return std::move(out_);
  }

 private:
  [[nodiscard]] const SearchGroup& group(int index) const {
    return problem_.groups[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] const CandidatePart& part(int index) const {
    return candidate_.part[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] double memory_time(double bytes) const {
    return bytes / machine_.processor.memory_bandwidth;
  }

  void add_moves() {
    const auto all = moves_of(problem_, candidate_, loops_);
    for (int g = 0; g < static_cast<int>(problem_.groups.size()); ++g) {
      std::vector<CandidateMove> chain;
      for (const CandidateMove& move : all) {
        if (move.group == g) chain.push_back(move);
      }
      // Drains run from the deepest loop outwards.
      if (group(g).written) {
        std::ranges::stable_sort(chain, std::ranges::greater(), &CandidateMove::depth);
        add_results(g, chain);
      } else {
        add_stages(g, chain);
      }
    }
  }

  void add_stages(int g, const std::vector<CandidateMove>& chain) {
    const SearchGroup& of = group(g);
    out_.memory_bytes += of.bytes * home_share(problem_, candidate_, g);
    int before = -1;
    for (std::size_t i = 0; i < chain.size(); ++i) {
      const double region = of.bytes * stage_share(problem_, candidate_, loops_, chain, i);
      OutlineMove timed = time_transfer(chain[i], region, of.buffers.size());
      timed.chosen_by = loops_that_choose(problem_, candidate_, loops_, chain, i);
      timed.before = before;
      out_.memory_bytes += region * timed.slots;
      before = static_cast<int>(out_.moves.size());
      out_.moves.push_back(timed);
    }
  }

  void add_results(int g, const std::vector<CandidateMove>& chain) {
    const SearchGroup& of = group(g);
    const double home = home_share(problem_, candidate_, g);
    out_.memory_bytes += of.bytes * home;
    if (of.reduced) {
      const double kept =
          chain.empty() ? home : drain_share(problem_, candidate_, loops_, chain, 0);
      out_.memory_bytes += of.state_bytes * kept;
    }
    for (std::size_t i = 0; i < chain.size(); ++i) {
      const double share = drain_share(problem_, candidate_, loops_, chain, i);
      const Way way = part(chain[i].part).way[static_cast<std::size_t>(g)];
      const bool adds = !is_indexed(of, part(chain[i].part).par);
      const bool whole_states = problem_.whole_states || !of.is_sum;
      const double sent = share * (adds && whole_states ? of.state_bytes : of.bytes);
      OutlineMove timed = time_transfer(chain[i], sent, of.buffers.size());
      timed.written = true;
      if (adds && !whole_states && way != Way::Bulk) {
        const int level = level_of(machine_, candidate_, chain[i].part);
        timed.time += converted_store_delay(machine_, level).seconds();
      }
      if (adds) {
        const double size = part(chain[i].part).size;
        const double touched = timed.move.rotates ? 3 * share : share * (1 + 1 / size);
        const bool by_library = way == Way::Bulk && of.is_sum;
        if (!by_library) {
          timed.fold =
              memory_time(touched * of.state_bytes) + machine_.processor.kernel_start.seconds();
        }
        out_.memory_bytes += sent * (timed.move.rotates ? timed.slots : 1);
      }
      if (home_at(problem_, candidate_, chain[i].part, g) < 0 && adds) timed.time *= 2;
      out_.moves.push_back(timed);
    }
    if (!of.reduced) return;
    out_.finalise +=
        memory_time((of.state_bytes + of.bytes) * home) + machine_.processor.kernel_start.seconds();
  }

  [[nodiscard]] OutlineMove time_transfer(const CandidateMove& move, double region,
                                          std::size_t buffers) const {
    OutlineMove timed;
    timed.move = move;
    const CandidatePart& at = part(move.part);
    const Way way = at.way[static_cast<std::size_t>(move.group)];
    const int level = level_of(machine_, candidate_, move.part);
    const Via via = via_of(candidate_, move, level);
    timed.queue = queue_of_via(via);
    timed.relays = way == Way::Relay;
    timed.slots = std::min(kMostSlots, slots_of(problem_, candidate_, move));
    timed.delay = machine_.levels[static_cast<std::size_t>(level)].latency.seconds();
    const double size = at.size;
    if (way == Way::Bulk) {
      timed.time = std::max(collective(move, level, region, static_cast<double>(buffers)),
                            region * (size - 1) / size / bus_share(level));
      timed.delay = machine_.processor.event.seconds();
      return timed;
    }
    const TransportRate* rate = find_transport(machine_, print(via), level);
    const double start = rate == nullptr ? 0 : rate->start.seconds();
    const double fastest = bus_share(level);
    const double bandwidth = rate == nullptr ? fastest : std::min(rate->bandwidth, fastest);
    const double copies = move.rotates ? 1 : size - 1;
    const double bytes = move.rotates ? region : region * (size - 1) / size;
    timed.time = copies * start + bytes / bandwidth;
    return timed;
  }

  // A rank's share of a level's bandwidth when all ranks send at once, as they do.
  [[nodiscard]] double bus_share(int level) const {
    const MachineLevel& at = machine_.levels[static_cast<std::size_t>(level)];
    if (at.kind != LevelKind::Bus) return at.bandwidth;
    std::int64_t ranks = 1;
    for (int l = 0; l <= level; ++l) ranks *= machine_.levels[static_cast<std::size_t>(l)].size;
    return at.bandwidth / static_cast<double>(std::min(ranks, problem_.mesh->ranks()));
  }

  [[nodiscard]] double collective(const CandidateMove& move, int level, double region,
                                  double buffers) const {
    const CandidatePart& at = part(move.part);
    const SearchGroup& of = group(move.group);
    const bool exchange = is_indexed(of, at.par);
    CollectiveKind kind = CollectiveKind::AllGather;
    double bytes = region / at.size;
    if (exchange || (of.written && !of.is_sum)) {
      kind = CollectiveKind::AllToAll;
      bytes = region;
    } else if (of.written) {
      kind = CollectiveKind::ReduceScatter;
      bytes = region;
    }
    return buffers * collective_time(machine_, kind, level, at.size, bytes / buffers).seconds();
  }

  const Problem& problem_;
  const Machine& machine_;
  const Candidate& candidate_;
  const std::vector<CandidateLoop>& loops_;
  OutlineMoves out_;
};

}  // namespace

OutlineMoves make_outline_moves(const Problem& problem, const Machine& machine,
                                const Candidate& candidate,
                                const std::vector<CandidateLoop>& loops) {
  return MoveMaker(problem, machine, candidate, loops).make();
}

}  // namespace harpe
