#include "schedule/primitives/shift.h"

#include <algorithm>

#include "schedule/moves.h"

namespace harpe {
namespace {

// The number of ranks along the mesh axes among the terms; digits of enclosing loops count 1.
Checked<std::int64_t> count_ranks(const ScheduleState& state, const Shift& step, std::size_t nest,
                                  std::size_t item) {
  const NestForm& form = state.form.nests[nest];
  MeshRef axes;
  for (const std::string& term : step.terms) {
    if (std::ranges::count(step.terms, term) > 1) {
      return make_diag(DiagCode::S232, {{"term", term}, {"loop", step.loop.digit}});
    }
    const bool outer =
        std::any_of(form.items.begin(), form.items.begin() + static_cast<std::ptrdiff_t>(item),
                    [&](const NestItem& above) {
                      const auto* loop = std::get_if<For>(&above);
                      return loop != nullptr && loop->digit == term;
                    });
    if (outer) continue;
    if (!require_mesh_axes(state, {term}).ok()) {
      return make_diag(DiagCode::S231, {{"term", term}, {"loop", step.loop.digit}});
    }
    axes.push_back(term);
  }
  if (axes.empty()) return std::int64_t{1};
  return require_mesh_axes(state, axes);
}

std::string describe_skew(const For& loop) {
  std::string out = loop.skew.empty() ? "no skew" : "skew " + quote_list(loop.skew);
  if (loop.offset != 0) out += " + " + std::to_string(loop.offset);
  return out;
}

}  // namespace

std::string find_broken_relay(const ScheduleState& state, std::size_t nest, std::size_t item,
                              const For& changed) {
  const NestForm& form = state.form.nests[nest];
  for (std::size_t i = item + 1; i < form.items.size(); ++i) {
    if (std::holds_alternative<For>(form.items[i])) break;
    const auto* move = std::get_if<Move>(&form.items[i]);
    if (move == nullptr || move->how != How::Relay) continue;
    if (const auto fault = find_rotation_fault(state, nest, &changed, *move)) {
      return "the relay of " + describe_move(*move) + " needs " + *fault;
    }
  }
  return "";
}

Checked<ShiftFacts> check(const ScheduleState& state, const Shift& step) {
  HP_TRY(const std::size_t nest, require_nest(state, step.loop.nest));
  HP_TRY(const std::size_t item, require_loop(state, nest, step.loop.digit));
  HP_TRY(const DigitInfo digit, require_digit(state, step.loop.digit));
  if (is_sequential(state, nest, digit.axis)) {
    return make_diag(DiagCode::S234,
                     {{"digit", digit.name}, {"axis", digit.axis}, {"nest", step.loop.nest}});
  }
  HP_TRY(const std::int64_t ranks, count_ranks(state, step, nest, item));
  if (digit.blocks() % ranks != 0) {
    return make_diag(DiagCode::S233,
                     {{"digit", digit.name}, {"extent", digit.blocks()}, {"ranks", ranks}});
  }
  if (step.offset.value_or(0) < 0) {
    return make_diag(DiagCode::S235, {{"digit", digit.name}, {"offset", *step.offset}});
  }
  const For& now = std::get<For>(state.form.nests[nest].items[item]);
  const For changed{now.digit, step.terms, step.offset.value_or(0), now.reverse};
  if (changed == now) {
    return make_diag(DiagCode::S008,
                     {{"what", "`for " + now.digit + "`"}, {"value", describe_skew(now)}});
  }
  if (const std::string broken = find_broken_relay(state, nest, item, changed); !broken.empty()) {
    return make_diag(DiagCode::S236, {{"digit", digit.name}, {"reason", broken}});
  }
  return ShiftFacts{nest, item, changed};
}

ScheduleState apply(ScheduleState state, const ShiftFacts& facts) {
  state.form.nests[facts.nest].items[facts.item] = facts.loop;
  return state;
}

}  // namespace harpe
