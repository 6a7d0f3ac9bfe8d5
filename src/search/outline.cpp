#include "search/outline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "machine/rates.h"
#include "search/outline_moves.h"
#include "search/positions.h"
#include "search/regions.h"
#include "sim/cost.h"

namespace harpe {
namespace {

constexpr std::int64_t kMostSteps = 64;  // steps of a masked nest that are evaluated one by one
// The accuracy of a mask's share of pairs, which is an area and, for many stretches, a sample.
constexpr double kCertain = 0.99;

double at_least(double x, double low) { return x < low ? low : x; }

// The list schedule of one rank.
class Walk {
 public:
  Walk(const Problem& problem, const Machine& machine, const Candidate& candidate,
       const std::vector<CandidateLoop>& loops, const OutlineMoves& moves)
      : problem_(problem), machine_(machine), candidate_(candidate), loops_(loops), moves_(moves) {
    for (const CandidateLoop& loop : loops) {
      extents_.push_back(candidate.part[static_cast<std::size_t>(loop.part)].size);
      steps_ *= extents_.back();
    }
    measure_call();
    if (problem.mask) {
      queries_.emplace(problem, candidate, loops, problem.mask->queries);
      keys_.emplace(problem, candidate, loops, problem.mask->keys);
    }
  }

  // A lower bound of the rank's compute time, launches included, without any waits.
  double busy(const PartCoordinates& rank) {
    rank_ = rank;
    least_ = problem_.mask.has_value() || is_leaf(problem_.leaf, Leaf::Matmul);
    const double launch = machine_.processor.kernel_start.seconds();
    if (!problem_.mask || steps_ > kMostSteps) {
      const double call = call_time({});
      return call == 0 ? 0 : static_cast<double>(steps_) * (launch + call);
    }
    return run(rank);
  }

  // The time of one rank. Its coordinates stand for all ranks along a part.
  double run(const PartCoordinates& rank) {
    rank_ = rank;
    queues_.fill(0);
    sm_ = 0;
    LoopTimes time{};
    std::size_t advanced = 0;  // the outermost loop that has just advanced; 0 at the beginning
    while (true) {
      bring(advanced, time);
      compute(time);
      std::size_t next = extents_.size();
      while (next > 0 && time[next - 1] + 1 == extents_[next - 1]) --next;
      leave(next, time);
      if (next == 0) break;
      ++time[next - 1];
      std::fill(time.begin() + static_cast<std::ptrdiff_t>(next), time.end(), 0);
      advanced = next;
    }
    double end = at_least(sm_ + moves_.finalise, *std::ranges::max_element(queues_));
    for (const OutlineMove& move : moves_.moves) end = at_least(end, move.arrival);
    return end;
  }

 private:
  void measure_call() {
    for (int axis = 0; axis < static_cast<int>(problem_.axes.size()); ++axis) {
      const double extent = call_extent(problem_, candidate_, loops_, axis);
      points_ *= extent / static_cast<double>(problem_.axes[static_cast<std::size_t>(axis)].size);
      switch (problem_.axes[static_cast<std::size_t>(axis)].role) {
        case AxisRole::Batch:
          shape_.batch *= extent;
          break;
        case AxisRole::Rows:
          shape_.rows *= extent;
          break;
        case AxisRole::Columns:
          shape_.columns *= extent;
          break;
        case AxisRole::Depth:
          shape_.depth *= extent;
          break;
      }
    }
    shape_.depth *= problem_.depth;
    shape_.flops = problem_.flops * points_;
    for (const SearchGroup& group : problem_.groups) {
      double share = 1;
      for (const int axis : group.axes) {
        share *= call_extent(problem_, candidate_, loops_, axis) /
                 static_cast<double>(problem_.axes[static_cast<std::size_t>(axis)].size);
      }
      shape_.bytes += share * (group.written ? group.state_bytes : group.bytes);
    }
  }

  // Runs the stages at the top, or inside the loops from `advanced` on, unless their blocks are
  // unchanged.
  void bring(std::size_t advanced, const LoopTimes& time) {
    auto& moves = moves_.moves;
    for (std::size_t i = 0; i < moves.size(); ++i) {
      OutlineMove& move = moves[i];
      if (move.written) continue;
      const auto depth = static_cast<std::size_t>(move.move.depth);
      const bool first = advanced == 0;
      if (!first && (depth < advanced || move.chosen_by >> (advanced - 1) == 0)) continue;
      bring_one(move, depth == 0 ? 0 : time[depth - 1]);
    }
  }

  void bring_one(OutlineMove& move, int step) {
    auto& moves = moves_.moves;
    OutlineMove* const before =
        move.before < 0 ? nullptr : &moves[static_cast<std::size_t>(move.before)];
    const double there = before == nullptr ? 0 : before->arrival;
    if (move.move.rotates && step == 0) {
      move.arrival = there;
      move.slot = -1;
      return;
    }
    const int slot = static_cast<int>(move.goes++ % move.slots);
    const double source = move.relays && step > 1 ? move.arrival : there;
    double& queue = queues_[move.queue];
    const double begin =
        at_least(at_least(queue, source), move.free[static_cast<std::size_t>(slot)] + move.delay);
    const double end = begin + move.time;
    queue = end;
    if (move.relays && move.slot >= 0) use_slot(move, end);
    if (before != nullptr) use_slot(*before, end);
    move.arrival = end + move.delay;
    move.slot = slot;
  }

  static void use_slot(OutlineMove& move, double until) {
    if (move.slot < 0) return;
    double& free = move.free[static_cast<std::size_t>(move.slot)];
    free = at_least(free, until);
  }

  // With many steps all count alike: what the rank sees in total, divided evenly.
  [[nodiscard]] double call_time(const LoopTimes& time) {
    double seen = 1;
    if (problem_.mask && steps_ > kMostSteps && !known_.empty()) return known_.front().second;
    if (problem_.mask) {
      const LoopTimes* const step = steps_ <= kMostSteps ? &time : nullptr;
      queries_->stretches(rank_, step, query_stretches_);
      keys_->stretches(rank_, step, key_stretches_);
      seen = seen_pairs(problem_.mask->visible, query_stretches_, key_stretches_);
    }
    if (seen <= 0) return 0;
    for (const auto& [share, cost] : known_) {
      if (std::abs(share - seen) < 1e-9) return cost;
    }
    LeafShape shape = shape_;
    shape.flops *= seen;
    const double cost =
        least_ ? leaf_bound(machine_, problem_.leaf, problem_.dtype, kCertain * shape.flops,
                            problem_.mask ? 0 : shape.bytes)
                     .seconds()
               : leaf_time(machine_, problem_.leaf, problem_.dtype, shape, seen < 0.999).seconds();
    known_.emplace_back(seen, cost);
    return cost;
  }

  void compute(const LoopTimes& time) {
    const double cost = call_time(time);
    if (cost == 0) return;
    double ready = 0;
    for (const OutlineMove& move : moves_.moves) {
      if (!move.written) ready = at_least(ready, move.arrival);
    }
    const bool is_late = ready > 0 && is_leaf(problem_.leaf, Leaf::Matmul);
    const double late = is_late ? kBehindOthers.seconds() : 0;
    sm_ = at_least(sm_, ready) + late + machine_.processor.kernel_start.seconds() + cost;
    for (OutlineMove& move : moves_.moves) {
      if (!move.written && is_last(move)) use_slot(move, sm_);
    }
  }

  [[nodiscard]] bool is_last(const OutlineMove& move) const {
    const auto at = &move - moves_.moves.data();
    return std::ranges::none_of(moves_.moves,
                                [&](const OutlineMove& other) { return other.before == at; });
  }

  // Runs the drains of the loops that end here: those deeper than the loop that advances.
  void leave(std::size_t next, const LoopTimes& time) {
    for (OutlineMove& move : moves_.moves) {
      if (!move.written) continue;
      const auto depth = static_cast<std::size_t>(move.move.depth);
      if (depth < next || (next == 0 ? false : depth == 0)) continue;
      const int step = depth == 0 ? 0 : time[depth - 1];
      leave_one(move, step, depth == 0 ? 1 : extents_[depth - 1]);
    }
  }

  // A relayed sum waits for the neighbour's sum; a pushed block waits only for the leaf.
  void leave_one(OutlineMove& move, int step, std::int64_t steps) {
    const bool own = move.move.rotates && (move.relays ? step == 0 : step + 1 == steps);
    if (own) {
      move.arrival = sm_;
      return;
    }
    const double source = move.relays ? at_least(move.arrival, 0) : sm_;
    double& queue = queues_[move.queue];
    queue = at_least(queue, source) + move.time;
    move.arrival = queue + move.delay;
    if (move.fold > 0) {
      sm_ = at_least(sm_, move.arrival) + move.fold;
      move.arrival = sm_;
    } else if (!move.move.rotates) {
      sm_ = at_least(sm_, move.arrival);
    }
  }

  const Problem& problem_;
  const Machine& machine_;
  const Candidate& candidate_;
  const std::vector<CandidateLoop>& loops_;
  OutlineMoves moves_;
  std::vector<std::int64_t> extents_;
  std::int64_t steps_ = 1;
  LeafShape shape_;
  double points_ = 1;
  std::optional<Positions> queries_;
  std::optional<Positions> keys_;
  std::vector<Stretch> query_stretches_;
  std::vector<Stretch> key_stretches_;
  std::vector<std::pair<double, double>> known_;
  PartCoordinates rank_{};
  std::array<double, kOutlineQueues> queues_{};
  double sm_ = 0;
  // Calls at the leaf's peak: hidden parts of a call change its shape, and the time of a GEMM
  // depends on its tiles.
  bool least_ = false;
};

// The corner of the mask whose rank sees most if later rows see more, or the opposite corner.
PartCoordinates corner(const Problem& problem, const Candidate& candidate, bool latest) {
  PartCoordinates rank{};
  for (int part = 0; part < candidate.parts; ++part) {
    const CandidatePart& at = candidate.part[static_cast<std::size_t>(part)];
    const bool by_query = problem.mask && at.par == problem.mask->queries;
    if (by_query == latest) rank[static_cast<std::size_t>(part)] = at.size - 1;
  }
  return rank;
}

// The larger value of `measure` for the ranks in the corners of the mask.
template <class Measure>
double slowest_corner(const Problem& problem, const Candidate& candidate, const Measure& measure) {
  const double time = measure(corner(problem, candidate, true));
  return problem.mask ? std::max(time, measure(corner(problem, candidate, false))) : time;
}

}  // namespace

Picoseconds bound_of(const Problem& problem, const Machine& machine, const Candidate& skeleton) {
  const auto loops = loops_of(problem, skeleton);
  const double busy = slowest_corner(problem, skeleton, [&](const PartCoordinates& rank) {
    return Walk(problem, machine, skeleton, loops, {}).busy(rank);
  });
  return from_seconds(std::max(busy, arrival_bound(problem, machine, skeleton)));
}

Outline outline(const Problem& problem, const Machine& machine, const Candidate& candidate) {
  Outline out;
  const auto loops = loops_of(problem, candidate);
  const OutlineMoves moves = make_outline_moves(problem, machine, candidate, loops);
  const double time = slowest_corner(problem, candidate, [&](const PartCoordinates& rank) {
    return Walk(problem, machine, candidate, loops, moves).run(rank);
  });
  out.time = from_seconds(time);
  out.memory_bytes = saturating_cast(moves.memory_bytes);
  return out;
}

}  // namespace harpe
