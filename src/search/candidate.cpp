#include "search/candidate.h"

#include <algorithm>
#include <tuple>

#include "machine/rates.h"
#include "search/regions.h"

namespace harpe {
namespace {

bool indexes(const SearchGroup& group, int axis) {
  return std::ranges::find(group.axes, axis) != group.axes.end();
}

Follow follow_of(const Problem& problem, const Candidate& candidate, int part, int group) {
  const int home = home_at(problem, candidate, part, group);
  if (home < 0) return Follow::Whole;
  return part_of(candidate, part).follow[static_cast<std::size_t>(home)];
}

// The number of loops around a move that is inside loops: those of other parts that index the
// buffer.
int depth_inside(const Problem& problem, const std::vector<CandidateLoop>& loops, int part,
                 int group) {
  int depth = 0;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    if (loops[i].part != part && indexes(group_of(problem, group), loops[i].axis)) {
      depth = static_cast<int>(i) + 1;
    }
  }
  return depth;
}

// An exchange keeps the number of bytes; a gather increases it.
bool is_exchange(const Problem& problem, const Candidate& candidate, int part, int group) {
  return indexes(group_of(problem, group), part_of(candidate, part).par);
}

}  // namespace

int home_at(const Problem& problem, const Candidate& candidate, int part, int group) {
  const CandidatePart& at = part_of(candidate, part);
  const bool moved = ((at.moved_home >> group) & 1) != 0;
  return moved ? at.par : group_of(problem, group).home[at.mesh_axis];
}

bool needs_move(const Problem& problem, const Candidate& candidate, int part, int group) {
  const CandidatePart& at = part_of(candidate, part);
  const int home = home_at(problem, candidate, part, group);
  if (home >= 0 && home == at.par) return false;
  if (!group_of(problem, group).written) return home >= 0;
  return home >= 0 || at.par >= 0;
}

std::vector<CandidateLoop> loops_of(const Problem& problem, const Candidate& candidate) {
  std::vector<CandidateLoop> loops;
  for (int step = 0; step < candidate.parts; ++step) {
    const int part = candidate.reversed ? candidate.parts - 1 - step : step;
    for (int axis = 0; axis < static_cast<int>(problem.axes.size()); ++axis) {
      bool is_home = false;
      for (int group = 0; group < static_cast<int>(problem.groups.size()); ++group) {
        is_home = is_home || home_at(problem, candidate, part, group) == axis;
      }
      const CandidatePart& at = part_of(candidate, part);
      const bool rotates = at.follow[static_cast<std::size_t>(axis)] == Follow::Rotate;
      if (is_home && axis != at.par && rotates) loops.push_back({part, axis});
    }
  }
  return loops;
}

std::vector<CandidateMove> moves_of(const Problem& problem, const Candidate& candidate,
                                    const std::vector<CandidateLoop>& loops) {
  std::vector<CandidateMove> moves;
  for (int group = 0; group < static_cast<int>(problem.groups.size()); ++group) {
    for (int part = 0; part < candidate.parts; ++part) {
      if (!needs_move(problem, candidate, part, group)) continue;
      CandidateMove move{part, group, 0, false};
      const Follow follow = follow_of(problem, candidate, part, group);
      const Way way = part_of(candidate, part).way[static_cast<std::size_t>(group)];
      if (follow == Follow::Rotate && way != Way::Bulk) {
        const int home = home_at(problem, candidate, part, group);
        const auto own = std::ranges::find_if(loops, [&](const CandidateLoop& loop) {
          return loop.part == part && loop.axis == home;
        });
        move.depth = static_cast<int>(own - loops.begin()) + 1;
        move.rotates = true;
      } else if (follow == Follow::Each) {
        move.depth = depth_inside(problem, loops, part, group);
      }
      moves.push_back(move);
    }
  }
  // Stages from the outermost inwards, exchanges before gathers. Drains in the opposite order.
  std::ranges::stable_sort(moves, {}, [&](const CandidateMove& move) {
    const bool written = group_of(problem, move.group).written;
    const int gather = is_exchange(problem, candidate, move.part, move.group) ? 0 : 1;
    return std::tuple(move.depth, written ? 1 : 0, written ? -gather : gather,
                      written ? -move.part : move.part);
  });
  return moves;
}

std::int64_t stride_of(const Candidate& candidate, int part) {
  std::int64_t stride = 1;
  for (int later = part + 1; later < candidate.parts; ++later) {
    stride *= part_of(candidate, later).size;
  }
  return stride;
}

int level_of(const Machine& machine, const Candidate& candidate, int part) {
  return level_of_group(machine, 0, stride_of(candidate, part), part_of(candidate, part).size);
}

Via via_of(const Candidate& candidate, const CandidateMove& move, int level) {
  const CandidatePart& at = part_of(candidate, move.part);
  const std::uint8_t chosen = at.via[static_cast<std::size_t>(move.group)];
  if (chosen > 0) return static_cast<Via>(chosen - 1);
  if (at.way[static_cast<std::size_t>(move.group)] == Way::Bulk) return Via::Nccl;
  return level == 0 ? Via::Ce : Via::Proxy;
}

int slots_of(const Problem& problem, const Candidate& candidate, const CandidateMove& move) {
  const CandidatePart& at = part_of(candidate, move.part);
  const std::uint8_t chosen = at.depth[static_cast<std::size_t>(move.group)];
  if (chosen > 0) return chosen;
  if (!move.rotates) return 1;
  const bool fetched = at.way[static_cast<std::size_t>(move.group)] == Way::Direct &&
                       !group_of(problem, move.group).written;
  return fetched ? 3 : 2;
}

bool keeps_sums(const Problem& problem, const Candidate& skeleton) {
  const auto in_all_results = [&](int axis) {
    return std::ranges::all_of(problem.groups, [&](const SearchGroup& group) {
      return !group.written || is_indexed(group, axis);
    });
  };
  for (int part = 0; part < skeleton.parts; ++part) {
    if (!in_all_results(part_of(skeleton, part).par)) return false;
  }
  return std::ranges::all_of(loops_of(problem, skeleton),
                             [&](const CandidateLoop& loop) { return in_all_results(loop.axis); });
}

}  // namespace harpe
