#include "search/regions.h"

#include <algorithm>

namespace harpe {
namespace {

const CandidatePart& part_of(const Candidate& candidate, int part) {
  return candidate.part[static_cast<std::size_t>(part)];
}

const SearchGroup& group_of(const Problem& problem, int group) {
  return problem.groups[static_cast<std::size_t>(group)];
}

// Loops open at a depth, over digits of the group that no home of its own places there.
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
      const bool whole = done && !own->rotates;
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
    if (left) {  // already where its home is along this part
      if (home >= 0) share /= size;
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

double distinct_steps(const Problem& problem, const Candidate& candidate,
                      const std::vector<CandidateLoop>& loops, const CandidateMove& move) {
  double steps = 1;
  for (int i = 0; i < move.depth; ++i) {
    const CandidateLoop& loop = loops[static_cast<std::size_t>(i)];
    if (!is_indexed(group_of(problem, move.group), loop.axis)) continue;
    const double size = part_of(candidate, loop.part).size;
    const bool own = move.rotates && i + 1 == move.depth;
    steps *= own ? size - 1 : size;  // the own block is there
  }
  return steps;
}

}  // namespace harpe
