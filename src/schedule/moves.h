#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/state.h"

namespace harpe {

// The moves that a step addresses: those of `buffers` over exactly `over` in one nest. `move`
// selects stage or drain if a buffer has both.
struct MoveAddress {
  std::string nest;
  std::vector<std::string> buffers;
  MeshRef over;
  std::optional<MoveKind> move;
};

struct FoundMoves {
  std::size_t nest = 0;
  std::vector<std::size_t> items;  // indices into NestForm::items, ascending
  friend bool operator==(const FoundMoves&, const FoundMoves&) = default;
};

// Errors: S011, S012, S014-S016, S020 (a buffer has no such move).
[[nodiscard]] Checked<FoundMoves> require_moves(const ScheduleState& state,
                                                const MoveAddress& address);
[[nodiscard]] const Move& move_at(const ScheduleState& state, const FoundMoves& moves,
                                  std::size_t i);
[[nodiscard]] Move& move_at(ScheduleState& state, const FoundMoves& moves, std::size_t i);

// "`K` over `gpu`".
[[nodiscard]] std::string describe_move(const Move& move);

[[nodiscard]] bool is_accessed(const Nest& nest, std::string_view buffer, bool reads);
// The digits that select blocks of a buffer that a nest reads (`reads`) or writes.
[[nodiscard]] std::vector<std::string> access_digits(const ScheduleState& state, std::size_t nest,
                                                     std::string_view buffer, bool reads);

// What fixes `digit` to one value at item `item`: "par", an enclosing "for", or "".
[[nodiscard]] std::string find_pin(const NestForm& nest, std::size_t item, std::string_view digit);
// A move whose chunk digit has only one value there, so that it cuts nothing; nullptr if none.
[[nodiscard]] const Move* find_pinned_move(const NestForm& nest);

// The loop directly around item `position`, or -1 at the nest's top.
[[nodiscard]] std::ptrdiff_t enclosing_loop(const NestForm& nest, std::size_t position);

// The position of a new move: after the moves directly inside loop item `loop`, or after those at
// the top.
[[nodiscard]] std::size_t insertion_point(const NestForm& nest, std::ptrdiff_t loop);

// The new moves of one stage or drain step, inserted before item `position` of a nest.
struct NewMoves {
  std::size_t nest = 0;
  std::size_t position = 0;
  std::vector<Move> moves;
};
// Resolves what stage and drain have in common; each checks the conditions of its `how` itself.
// Errors: S011, S012, S014-S016, S019, S025, S026 (already moved over one of these axes).
[[nodiscard]] Checked<NewMoves> prepare_moves(const ScheduleState& state, std::string_view nest,
                                              const std::vector<std::string>& buffers,
                                              const std::optional<std::string>& at,
                                              const Move& pattern);
void insert_moves(ScheduleState& state, const NewMoves& added);
// The loop directly around the new moves, or nullptr at the nest's top.
[[nodiscard]] const For* loop_around(const ScheduleState& state, const NewMoves& added);

// Why a relay of `move` inside `loop` is not a rotation (commir.md 4.4), or nothing. `loop` is
// separate from the state, so that a step can check the loop that it would leave. The text
// completes "relay of `K` over `gpu` needs …".
[[nodiscard]] std::optional<std::string> find_rotation_fault(const ScheduleState& state,
                                                             std::size_t nest, const For* loop,
                                                             const Move& move);

}  // namespace harpe
