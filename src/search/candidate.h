#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/form.h"
#include "machine/machine.h"
#include "search/problem.h"

namespace harpe {

// One schedule, as small as it can be said (commir.md 11.2): a value of some hundred bytes that
// holds no text. The mesh is cut into parts, major first; every part deals one axis of the nest to
// its ranks, and says how the digits that homes have there are visited and how each group moves.

constexpr int kMostParts = 4;
constexpr int kMostAxes = 8;
constexpr int kMostGroups = 8;

// A home digit on a part whose ranks work in parallel on another digit.
enum class Follow : std::uint8_t {
  Whole,   // inside the leaf: all its blocks are brought before the first loop, results leave after
  Each,    // the same anew for every step of the loops of other parts that index the buffer
  Rotate,  // a loop skewed by the part: another rank's block at every step
};
enum class Way : std::uint8_t { None, Bulk, Direct, Relay };

struct CandidatePart {
  std::uint8_t mesh_axis = 0;
  std::uint16_t size = 1;
  std::int8_t par = -1;  // axis of the nest
  std::uint8_t moved_home =
      0;  // bit per group: its home here divides `par`, not the contract's axis
  std::array<Follow, kMostAxes> follow{};
  std::array<Way, kMostGroups> way{};
  std::array<std::uint8_t, kMostGroups> depth{};  // 0: the way's usual one
  std::array<std::uint8_t, kMostGroups> via{};    // 0: the usual transport; else 1 + Via
  friend bool operator==(const CandidatePart&, const CandidatePart&) = default;
};

struct Candidate {
  std::uint8_t parts = 0;
  bool zigzag = false;    // query and key positions of every rank from the front and from the back
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

// Index of the group's axis divided at the part, or -1 where the part's ranks hold replicas.
[[nodiscard]] int home_at(const Problem& problem, const Candidate& candidate, int part, int group);
// Must the group's buffers cross the part's ranks?
[[nodiscard]] bool needs_move(const Problem& problem, const Candidate& candidate, int part,
                              int group);

// One loop of the nest.
struct CandidateLoop {
  int part = 0;
  int axis = 0;
};
[[nodiscard]] std::vector<CandidateLoop> loops_of(const Problem& problem,
                                                  const Candidate& candidate);
// Whether every sum stays in one place, where it is folded as the program says.
[[nodiscard]] bool keeps_sums(const Problem& problem, const Candidate& skeleton);

// One crossing: of a group, at a part, under the first `depth` loops. In the order of a form's
// text.
struct CandidateMove {
  int part = 0;
  int group = 0;
  int depth = 0;
  bool rotates = false;  // inside the loop over its own home digit
};
[[nodiscard]] std::vector<CandidateMove> moves_of(const Problem& problem,
                                                  const Candidate& candidate,
                                                  const std::vector<CandidateLoop>& loops);

// Ranks between neighbours of a part.
[[nodiscard]] std::int64_t stride_of(const Candidate& candidate, int part);
// The machine's level at which a part's ranks meet.
[[nodiscard]] int level_of(const Machine& machine, const Candidate& candidate, int part);

// The transport a move takes: what the candidate says, else copy engines and NCCL inside a node,
// proxies and NCCL beyond.
[[nodiscard]] Via via_of(const Candidate& candidate, const CandidateMove& move, int level);
// Slots of a stage, inboxes of a drain.
[[nodiscard]] int slots_of(const Problem& problem, const Candidate& candidate,
                           const CandidateMove& move);

// The schedule in full.
[[nodiscard]] NormalForm form_of(const Problem& problem, const Machine& machine,
                                 const Candidate& candidate);
// "Sq:4 · ring of k v | Hkv:2 · q k v exchanged": what a table shows.
[[nodiscard]] std::string describe(const Problem& problem, const Candidate& candidate);

}  // namespace harpe
