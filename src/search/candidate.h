#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/form.h"
#include "machine/machine.h"
#include "search/problem.h"

namespace harpe {

// One schedule in its smallest form (commir.md 11.2): a value of some hundred bytes without text.
// The mesh is cut into parts, major first. Every part divides one axis of the nest among its ranks,
// and states how home digits on it are visited and how each group moves.

constexpr int kMostParts = 4;
constexpr int kMostAxes = 8;
constexpr int kMostGroups = 8;

// How a home digit is visited, on a part whose ranks divide another digit.
enum class Follow : std::uint8_t {
  Whole,   // inside the leaf: all blocks come before the first loop, results leave after it
  Each,    // as Whole, but again in every step of loops of other parts that index the buffer
  Rotate,  // a loop skewed by the part: each step has another rank's block
};
enum class Way : std::uint8_t { None, Bulk, Direct, Relay };

struct CandidatePart {
  std::uint8_t mesh_axis = 0;
  std::uint16_t size = 1;
  std::int8_t par = -1;  // an axis of the nest
  std::uint8_t moved_home =
      0;  // bit per group: its home here divides `par`, not the contract's axis
  std::array<Follow, kMostAxes> follow{};
  std::array<Way, kMostGroups> way{};
  std::array<std::uint8_t, kMostGroups> depth{};  // 0: the default of its way
  std::array<std::uint8_t, kMostGroups> via{};    // 0: the default transport; else 1 + Via
  friend bool operator==(const CandidatePart&, const CandidatePart&) = default;
};

struct Candidate {
  std::uint8_t parts = 0;
  bool zigzag = false;    // each rank has query and key positions from the front and from the back
  bool reversed = false;  // loops of the last part are outermost
  std::array<CandidatePart, kMostParts> part{};
  friend bool operator==(const Candidate&, const Candidate&) = default;
};
static_assert(sizeof(Candidate) <= 512);

[[nodiscard]] inline const CandidatePart& part_of(const Candidate& candidate, int part) {
  return candidate.part[static_cast<std::size_t>(part)];
}
[[nodiscard]] inline const SearchGroup& group_of(const Problem& problem, int group) {
  return problem.groups[static_cast<std::size_t>(group)];
}

// The index of the group's axis divided at the part; -1 where the part's ranks hold replicas.
[[nodiscard]] int home_at(const Problem& problem, const Candidate& candidate, int part, int group);
// True if the group's buffers must move between the part's ranks.
[[nodiscard]] bool needs_move(const Problem& problem, const Candidate& candidate, int part,
                              int group);

// One loop of the nest.
struct CandidateLoop {
  int part = 0;
  int axis = 0;
};
[[nodiscard]] std::vector<CandidateLoop> loops_of(const Problem& problem,
                                                  const Candidate& candidate);
// True if every sum stays on one rank, which folds it in the program's order.
[[nodiscard]] bool keeps_sums(const Problem& problem, const Candidate& skeleton);

// One move: of a group, at a part, inside the first `depth` loops. In the order of a form's text.
struct CandidateMove {
  int part = 0;
  int group = 0;
  int depth = 0;
  bool rotates = false;  // inside the loop over its own home digit
};
[[nodiscard]] std::vector<CandidateMove> moves_of(const Problem& problem,
                                                  const Candidate& candidate,
                                                  const std::vector<CandidateLoop>& loops);

// The distance in ranks between neighbours of a part.
[[nodiscard]] std::int64_t stride_of(const Candidate& candidate, int part);
// The machine's level at which a part's ranks meet.
[[nodiscard]] int level_of(const Machine& machine, const Candidate& candidate, int part);

// The transport of a move: the candidate's, or by default copy engines and NCCL inside a node,
// proxies and NCCL beyond.
[[nodiscard]] Via via_of(const Candidate& candidate, const CandidateMove& move, int level);
// Slots of a stage, inboxes of a drain.
[[nodiscard]] int slots_of(const Problem& problem, const Candidate& candidate,
                           const CandidateMove& move);

// The complete schedule.
[[nodiscard]] NormalForm form_of(const Problem& problem, const Machine& machine,
                                 const Candidate& candidate);
// "Sq:4 · ring of k v | Hkv:2 · q k v exchanged", as in tables.
[[nodiscard]] std::string describe(const Problem& problem, const Candidate& candidate);

}  // namespace harpe
