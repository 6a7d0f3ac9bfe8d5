#include "schedule/moves.h"

#include <algorithm>

#include "ir/mask_contract.h"
#include "ir/text.h"

namespace harpe {
namespace {

std::vector<std::string> list_moves(const NestForm& nest) {
  std::vector<std::string> moves;
  for (const NestItem& item : nest.items) {
    if (const auto* move = std::get_if<Move>(&item)) {
      moves.push_back(std::string(print(move->kind)) + " " + move->buffer + " over " +
                      print_mesh_ref(move->over));
    }
  }
  return moves;
}

}  // namespace

Checked<FoundMoves> require_moves(const ScheduleState& state, const MoveAddress& address) {
  FoundMoves found;
  HP_TRY(found.nest, require_nest(state, address.nest));
  HP_REQUIRE_OK(require_mesh_axes(state, address.over));
  if (address.buffers.empty()) return make_diag(DiagCode::S025);
  const NestForm& nest = state.form.nests[found.nest];
  for (const std::string& buffer : address.buffers) {
    HP_REQUIRE_OK(require_buffer(state, buffer));
    bool any = false;
    for (std::size_t i = 0; i < nest.items.size(); ++i) {
      const auto* move = std::get_if<Move>(&nest.items[i]);
      if (move == nullptr || move->buffer != buffer || move->over != address.over) continue;
      if (address.move && move->kind != *address.move) continue;
      any = true;
      if (std::ranges::find(found.items, i) == found.items.end()) found.items.push_back(i);
    }
    if (!any) {
      return make_diag(DiagCode::S020,
                       {{"kind", address.move ? print(*address.move) : "stage or drain"},
                        {"buffer", buffer},
                        {"over", print_mesh_ref(address.over)},
                        {"nest", nest.nest},
                        {"moves", quote_list(list_moves(nest))}});
    }
  }
  std::ranges::sort(found.items);
  return found;
}

const Move& move_at(const ScheduleState& state, const FoundMoves& moves, std::size_t i) {
  return std::get<Move>(state.form.nests[moves.nest].items[moves.items[i]]);
}

Move& move_at(ScheduleState& state, const FoundMoves& moves, std::size_t i) {
  return std::get<Move>(state.form.nests[moves.nest].items[moves.items[i]]);
}

std::string describe_move(const Move& move) {
  return "`" + move.buffer + "` over `" + print_mesh_ref(move.over) + "`";
}

bool is_accessed(const Nest& nest, std::string_view buffer, bool reads) {
  return std::ranges::any_of(nest.stmts, [&](const Stmt& stmt) {
    const std::vector<Access> accesses = reads ? reads_of(stmt) : stmt.targets;
    return std::ranges::find(accesses, buffer, &Access::buffer) != accesses.end();
  });
}

std::vector<std::string> access_digits(const ScheduleState& state, std::size_t nest,
                                       std::string_view buffer, bool reads) {
  std::vector<std::string> digits;
  for (const Stmt& stmt : nest_of(state, nest).stmts) {
    for (const Access& access : reads ? reads_of(stmt) : stmt.targets) {
      if (access.buffer != buffer) continue;
      for (std::string& digit : digits_of(state, access)) digits.push_back(std::move(digit));
    }
  }
  return digits;
}

std::string find_pin(const NestForm& nest, std::size_t item, std::string_view digit) {
  for (std::size_t i = 0; i < nest.items.size(); ++i) {
    const auto* par = std::get_if<Par>(&nest.items[i]);
    const auto* loop = std::get_if<For>(&nest.items[i]);
    if (par != nullptr && par->digit == digit) return "par";
    if (loop != nullptr && loop->digit == digit && i < item) return "for";
  }
  return "";
}

const Move* find_pinned_move(const NestForm& nest) {
  for (std::size_t i = 0; i < nest.items.size(); ++i) {
    const auto* move = std::get_if<Move>(&nest.items[i]);
    if (move != nullptr && move->chunk && !find_pin(nest, i, *move->chunk).empty()) return move;
  }
  return nullptr;
}

std::ptrdiff_t enclosing_loop(const NestForm& nest, std::size_t position) {
  for (std::size_t i = position; i > 0; --i) {
    if (std::holds_alternative<For>(nest.items[i - 1])) return static_cast<std::ptrdiff_t>(i) - 1;
  }
  return -1;
}

std::size_t insertion_point(const NestForm& nest, std::ptrdiff_t loop) {
  auto i = static_cast<std::size_t>(loop + 1);
  while (i < nest.items.size() && !std::holds_alternative<For>(nest.items[i])) ++i;
  return i;
}

Checked<NewMoves> prepare_moves(const ScheduleState& state, std::string_view nest,
                                const std::vector<std::string>& buffers,
                                const std::optional<std::string>& at, const Move& pattern) {
  NewMoves added;
  HP_TRY(added.nest, require_nest(state, nest));
  const NestForm& form = state.form.nests[added.nest];
  HP_REQUIRE_OK(require_mesh_axes(state, pattern.over));
  if (buffers.empty()) return make_diag(DiagCode::S025);
  std::ptrdiff_t loop = -1;
  if (at) {
    HP_TRY(const std::size_t item, require_loop(state, added.nest, *at));
    loop = static_cast<std::ptrdiff_t>(item);
  }
  added.position = insertion_point(form, loop);
  for (const std::string& buffer : buffers) {
    HP_REQUIRE_OK(require_buffer(state, buffer));
    std::vector<NestItem> others = form.items;
    others.insert(others.end(), added.moves.begin(), added.moves.end());
    for (const NestItem& item : others) {
      const auto* move = std::get_if<Move>(&item);
      if (move == nullptr || move->kind != pattern.kind || move->buffer != buffer) continue;
      for (const std::string& axis : pattern.over) {
        if (!contains(move->over, axis)) continue;
        return make_diag(
            DiagCode::S026,
            {{"kind", print(pattern.kind)}, {"buffer", buffer}, {"axis", axis}, {"nest", nest}});
      }
    }
    Move move = pattern;
    move.buffer = buffer;
    added.moves.push_back(std::move(move));
  }
  return added;
}

void insert_moves(ScheduleState& state, const NewMoves& added) {
  std::vector<NestItem>& items = state.form.nests[added.nest].items;
  items.insert(items.begin() + static_cast<std::ptrdiff_t>(added.position), added.moves.begin(),
               added.moves.end());
}

const For* loop_around(const ScheduleState& state, const NewMoves& added) {
  const NestForm& form = state.form.nests[added.nest];
  const std::ptrdiff_t loop = enclosing_loop(form, added.position);
  return loop < 0 ? nullptr : &std::get<For>(form.items[static_cast<std::size_t>(loop)]);
}

std::optional<std::string> find_rotation_fault(const ScheduleState& state, std::size_t nest,
                                               const For* loop, const Move& move) {
  const std::string over = print_mesh_ref(move.over);
  if (loop == nullptr) return "a loop around it: `for … skew " + over + "`";
  const std::string name = "`for " + loop->digit + "`";
  if (loop->skew != move.over) {
    const std::string now =
        loop->skew.empty() ? "is not skewed" : "is skewed by `" + print_mesh_ref(loop->skew) + "`";
    return name + " to be skewed by `" + over + "`, and it " + now;
  }
  if (loop->reverse) return name + " to run forwards, and it is reversed";
  const auto digit = require_digit(state, loop->digit);
  const auto ranks = require_mesh_axes(state, move.over);
  HP_CHECK(digit.ok() && ranks.ok(), "a loop or move of the form names what does not exist");
  if (digit->blocks() != *ranks) {
    return name + " to have one step per rank: " + std::to_string(digit->blocks()) + " steps on " +
           std::to_string(*ranks) + " ranks";
  }
  const bool reads = move.kind == MoveKind::Stage;
  if (!contains(access_digits(state, nest, move.buffer, reads), loop->digit)) {
    return "`" + loop->digit + "` to be a digit of `" + move.buffer + "`";
  }
  return std::nullopt;
}

}  // namespace harpe
