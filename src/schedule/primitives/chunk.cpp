#include "schedule/primitives/chunk.h"

#include <algorithm>

#include "ir/text.h"
#include "offers/offers.h"

namespace harpe {
namespace {

bool has_over(const Step& step) {
  return std::ranges::find(step.arguments, "over", &Argument::keyword) != step.arguments.end();
}

bool is_routed(const ScheduleState& state, std::size_t nest, std::string_view buffer) {
  for (const Stmt& stmt : nest_of(state, nest).stmts) {
    for (const Access& access : stmt.operands) {
      if (access.buffer != buffer) continue;
      if (std::ranges::any_of(access.renames,
                              [](const Rename& rename) { return !rename.member.empty(); })) {
        return true;
      }
    }
  }
  return false;
}

Checked<Ok> check_chunk(const ScheduleState& state, const FoundMoves& moves, std::size_t i,
                        const DigitInfo& digit) {
  const Move& move = move_at(state, moves, i);
  const NestForm& form = state.form.nests[moves.nest];
  if (move.how == How::Inline) return make_diag(DiagCode::S433, {{"move", describe_move(move)}});
  const bool reads = move.kind == MoveKind::Stage;
  const std::vector<std::string> own = access_digits(state, moves.nest, move.buffer, reads);
  const std::vector<std::string> axes = iteration_axes(state.program, nest_of(state, moves.nest));
  const bool routed = is_routed(state, moves.nest, move.buffer) && contains(axes, digit.axis);
  if (!contains(own, digit.name) && !routed) {
    return make_diag(DiagCode::S431,
                     {{"digit", digit.name}, {"buffer", move.buffer}, {"digits", quote_list(own)}});
  }
  if (!routed) HP_REQUIRE_OK(require_explicit_digit(state, digit.name));
  if (const std::string pin = find_pin(form, moves.items[i], digit.name); !pin.empty()) {
    return make_diag(
        DiagCode::S432,
        {{"digit", digit.name}, {"move", describe_move(move)}, {"pin", pin}, {"nest", form.nest}});
  }
  return Ok{};
}

Checked<Ok> check_chunkable(const ScheduleState& state, std::size_t nest) {
  for (const Stmt& stmt : nest_of(state, nest).stmts) {
    if (!is_offered(stmt.leaf, &KernelOffer::chunks)) {
      return make_diag(DiagCode::S444, {{"what", "leaf `" + stmt.leaf + "`"}});
    }
  }
  if (const auto& chosen = state.form.nests[nest].leaf.kernel) {
    const KernelOffer* const kernel = find_offer(*chosen);
    if (kernel == nullptr || !kernel->chunks) {
      return make_diag(DiagCode::S444, {{"what", "kernel `" + *chosen + "`"}});
    }
  }
  return Ok{};
}

Checked<Ok> check_order(const ScheduleState& state, std::size_t nest, const ChunkLeaf& step) {
  if (!step.order) return Ok{};
  const std::vector<std::string>& order = *step.order;
  const std::string first = order.empty() ? "" : order[0];
  HP_TRY(const DigitInfo digit, require_bindable(state, nest, first));
  if (first == step.digit) return make_diag(DiagCode::S442, {{"digit", first}});
  const MeshRef axes(order.begin() + 1, order.end());
  HP_TRY(const std::int64_t ranks, require_mesh_axes(state, axes));
  if (digit.blocks() % ranks == 0) return Ok{};
  return make_diag(DiagCode::S443,
                   {{"digit", first}, {"extent", digit.blocks()}, {"ranks", ranks}});
}

// order=[e, a, b]  ->  skew(e, a, b)
Call make_order(const std::vector<std::string>& names) {
  Call call;
  call.function = "skew";
  for (const std::string& name : names) call.args.emplace_back(Name{name});
  return call;
}

}  // namespace

bool ChunkMove::selects(const Step& step) { return has_over(step); }

bool ChunkLeaf::selects(const Step& step) { return !has_over(step); }

Checked<ChunkMoveFacts> check(const ScheduleState& state, const ChunkMove& step) {
  HP_TRY(const FoundMoves moves,
         require_moves(state, {step.nest, step.buffers, step.over, step.move}));
  HP_TRY(const DigitInfo digit, require_digit(state, step.digit));
  bool changes = false;
  for (std::size_t i = 0; i < moves.items.size(); ++i) {
    HP_REQUIRE_OK(check_chunk(state, moves, i, digit));
    changes = changes || move_at(state, moves, i).chunk != step.digit;
  }
  if (!changes) {
    return make_diag(DiagCode::S008,
                     {{"what", "the grain of " + describe_move(move_at(state, moves, 0))},
                      {"value", "`" + step.digit + "`"}});
  }
  return ChunkMoveFacts{moves, step.digit};
}

ScheduleState apply(ScheduleState state, const ChunkMoveFacts& facts) {
  for (std::size_t i = 0; i < facts.moves.items.size(); ++i) {
    move_at(state, facts.moves, i).chunk = facts.digit;
  }
  return state;
}

Checked<ChunkLeafFacts> check(const ScheduleState& state, const ChunkLeaf& step) {
  if (step.leaf != "leaf") return make_diag(DiagCode::S441, {{"given", step.leaf}});
  HP_TRY(const std::size_t nest, require_nest(state, step.nest));
  // The leaf's present binding is replaced, so bindability is checked without it.
  ScheduleState bare = state;
  bare.form.nests[nest].leaf.chunk.reset();
  bare.form.nests[nest].leaf.order.reset();
  HP_REQUIRE_OK(require_bindable(bare, nest, step.digit));
  HP_REQUIRE_OK(check_order(bare, nest, step));
  HP_REQUIRE_OK(check_chunkable(state, nest));
  ChunkLeafFacts facts{nest, step.digit, std::nullopt};
  if (step.order) facts.order = make_order(*step.order);
  const LeafChoice& now = state.form.nests[nest].leaf;
  if (now.chunk == facts.digit && now.order == facts.order) {
    return make_diag(DiagCode::S008, {{"what", "the chunk of nest `" + step.nest + "`"},
                                      {"value", "`" + step.digit + "`"}});
  }
  return facts;
}

ScheduleState apply(ScheduleState state, const ChunkLeafFacts& facts) {
  LeafChoice& leaf = state.form.nests[facts.nest].leaf;
  leaf.chunk = facts.digit;
  leaf.order = facts.order;
  return state;
}

}  // namespace harpe
