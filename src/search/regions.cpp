#include "search/regions.h"

#include <algorithm>
#include <cmath>

namespace harpe {
namespace {

// The share left by open loops over digits of the group that are not its own home there.
double other_loops(const Problem& problem, const Candidate& candidate,
                   const std::vector<CandidateLoop>& loops, int group, int depth) {
  double share = 1;
  for (int i = 0; i < depth; ++i) {
    const CandidateLoop& loop = loops[static_cast<std::size_t>(i)];
    if (!is_indexed(group_of(problem, group), loop.axis)) continue;
    if (home_at(problem, candidate, loop.part, group) == loop.axis) continue;
    share /= part_of(candidate, loop.part).size;
  }
  return share;
}

bool is_open(const std::vector<CandidateLoop>& loops, int part, int axis, int depth) {
  for (int i = 0; i < depth; ++i) {
    const CandidateLoop& loop = loops[static_cast<std::size_t>(i)];
    if (loop.part == part && loop.axis == axis) return true;
  }
  return false;
}

// The share of a group that ranks equal in the first `outside` parts must receive from others: the
// operands that they use, or the results that they own, minus what they already have. Results with
// several contributors come entirely from others.
double missing_share(const Problem& problem, const Candidate& candidate, int group, int outside) {
  double wanted = 1;
  double both = 1;
  bool added = false;
  const bool written = group_of(problem, group).written;
  for (int part = 0; part < outside; ++part) {
    const double size = part_of(candidate, part).size;
    const int par = part_of(candidate, part).par;
    const int home = home_at(problem, candidate, part, group);
    const bool worked = par >= 0 && is_indexed(group_of(problem, group), par);
    added = added || (written && par >= 0 && !worked);
    if (written ? home >= 0 : worked) wanted /= size;
    if (worked || home >= 0) both /= size;
    if (worked && home >= 0 && home != par) both /= size;
  }
  return added ? wanted : wanted - both;
}

// The fastest rate at which anything crosses from outside a block of this many processors.
double fastest_beyond(const Machine& machine, double ranks) {
  double inner = 1;
  double fastest = 0;
  for (const MachineLevel& level : machine.levels) {
    inner *= static_cast<double>(level.size);
    if (std::fmod(ranks, inner) == 0 && &level != &machine.levels.back()) continue;
    fastest = std::max(fastest, level.bandwidth);
    for (const TransportRate& rate : machine.transports) {
      if (rate.level == level.name) fastest = std::max(fastest, rate.bandwidth);
    }
  }
  return fastest;
}

}  // namespace

bool is_indexed(const SearchGroup& group, int axis) {
  return std::ranges::find(group.axes, axis) != group.axes.end();
}

double home_share(const Problem& problem, const Candidate& candidate, int group) {
  double share = 1;
  for (int part = 0; part < candidate.parts; ++part) {
    if (home_at(problem, candidate, part, group) >= 0) share /= part_of(candidate, part).size;
  }
  return share;
}

double stage_share(const Problem& problem, const Candidate& candidate,
                   const std::vector<CandidateLoop>& loops, const std::vector<CandidateMove>& chain,
                   std::size_t index) {
  const CandidateMove& move = chain[index];
  const SearchGroup& group = group_of(problem, move.group);
  double share = other_loops(problem, candidate, loops, move.group, move.depth);
  for (int part = 0; part < candidate.parts; ++part) {
    const double size = part_of(candidate, part).size;
    const int home = home_at(problem, candidate, part, move.group);
    const auto own = std::ranges::find(chain, part, &CandidateMove::part);
    const bool done =
        own != chain.end() && own - chain.begin() <= static_cast<std::ptrdiff_t>(index);
    const bool later = own != chain.end() && !done;
    if (home >= 0) {
      const bool whole = done && !own->rotates && !is_open(loops, part, home, move.depth);
      if (!whole) share /= size;
    }
    const int par = part_of(candidate, part).par;
    if (par >= 0 && par != home && is_indexed(group, par) && !later) share /= size;
  }
  return share;
}

double drain_share(const Problem& problem, const Candidate& candidate,
                   const std::vector<CandidateLoop>& loops, const std::vector<CandidateMove>& chain,
                   std::size_t index) {
  const CandidateMove& move = chain[index];
  const SearchGroup& group = group_of(problem, move.group);
  double share = other_loops(problem, candidate, loops, move.group, move.depth);
  for (int part = 0; part < candidate.parts; ++part) {
    const double size = part_of(candidate, part).size;
    const int home = home_at(problem, candidate, part, move.group);
    const int par = part_of(candidate, part).par;
    const auto own = std::ranges::find(chain, part, &CandidateMove::part);
    const bool left =
        own != chain.end() && own - chain.begin() < static_cast<std::ptrdiff_t>(index);
    if (left) {  // already at its home along this part; a sum for all is spread until the end
      const bool added = par >= 0 && !is_indexed(group, par);
      if (home >= 0 || added) share /= size;
      continue;
    }
    if (par >= 0 && is_indexed(group, par)) share /= size;
    if (home >= 0 && home != par && is_open(loops, part, home, move.depth)) share /= size;
  }
  return share;
}

double call_extent(const Problem& problem, const Candidate& candidate,
                   const std::vector<CandidateLoop>& loops, int axis) {
  auto extent = static_cast<double>(problem.axes[static_cast<std::size_t>(axis)].size);
  for (int part = 0; part < candidate.parts; ++part) {
    if (part_of(candidate, part).par == axis) extent /= part_of(candidate, part).size;
  }
  for (const CandidateLoop& loop : loops) {
    if (loop.axis == axis) extent /= part_of(candidate, loop.part).size;
  }
  return extent;
}

std::uint32_t loops_that_choose(const Problem& problem, const Candidate& candidate,
                                const std::vector<CandidateLoop>& loops,
                                const std::vector<CandidateMove>& chain, std::size_t index) {
  const CandidateMove& move = chain[index];
  std::uint32_t chosen = 0;
  for (int i = 0; i < move.depth; ++i) {
    const CandidateLoop& loop = loops[static_cast<std::size_t>(i)];
    if (!is_indexed(group_of(problem, move.group), loop.axis)) continue;
    const auto own = std::ranges::find(chain, loop.part, &CandidateMove::part);
    const bool of_home = home_at(problem, candidate, loop.part, move.group) == loop.axis;
    const bool done = own - chain.begin() <= static_cast<std::ptrdiff_t>(index);
    if (!of_home || done) chosen |= std::uint32_t{1} << i;
  }
  return chosen;
}

double arrival_bound(const Problem& problem, const Machine& machine, const Candidate& candidate) {
  // A window hides some data, which is not sent; under a causal mask some rank still needs
  // everything.
  if (problem.mask && problem.mask->visible.low > -Visibility::kUnbounded / 2) return 0;
  double bound = 0;
  double ranks = 1;
  for (int outside = candidate.parts; outside > 0; --outside) {
    double bytes = 0;
    for (std::size_t g = 0; g < problem.groups.size(); ++g) {
      if (problem.mask && problem.groups[g].written) continue;
      bytes +=
          problem.groups[g].bytes * missing_share(problem, candidate, static_cast<int>(g), outside);
    }
    bound = std::max(bound, bytes / ranks / fastest_beyond(machine, ranks));
    ranks *= part_of(candidate, outside - 1).size;
  }
  return bound;
}

}  // namespace harpe
