#include "schedule/primitives/route_layout.h"

#include "schedule/primitives/balance.h"

namespace harpe {
namespace {

Checked<const Route*> require_route(const ScheduleState& state, const std::string& name) {
  const Route* route = find_route(state.program, name);
  if (route != nullptr && !route->slots.empty() && !route->choices.empty()) return route;
  std::vector<std::string> names;
  for (const Decl& decl : state.program.decls) {
    if (const auto* known = std::get_if<Route>(&decl)) names.push_back(known->name);
  }
  return make_diag(DiagCode::S141, {{"name", name}, {"hint", suggestion(name, names)}});
}

Checked<DigitInfo> require_digit_of(const ScheduleState& state, const std::string& name,
                                    const std::string& axis) {
  HP_TRY(DigitInfo digit, require_explicit_digit(state, name));
  if (digit.axis == axis) return digit;
  return make_diag(DiagCode::S143, {{"digit", name}, {"owner", digit.axis}, {"axis", axis}});
}

}  // namespace

Checked<RouteLayoutFacts> check(const ScheduleState& state, const RouteLayout& step) {
  HP_TRY(const Route* route, require_route(state, step.route));
  if (step.kind == RouteLayoutKind::Compact) {
    return make_diag(DiagCode::S145, {{"route", step.route}});
  }
  if (step.digits.empty() || step.digits.size() % 2 != 0) {
    return make_diag(DiagCode::S142, {{"route", step.route}, {"given", step.digits.size()}});
  }
  RouteLayoutFacts facts{route->slots.back(), Call{"slab", {}}};
  for (std::size_t i = 0; i < step.digits.size(); i += 2) {
    HP_TRY(const DigitInfo slot, require_digit_of(state, step.digits[i], facts.axis));
    HP_TRY(const DigitInfo source,
           require_digit_of(state, step.digits[i + 1], route->choices.front()));
    if (slot.extent != source.extent) {
      return make_diag(DiagCode::S144, {{"slot", slot.name},
                                        {"slots", *slot.extent},
                                        {"source", source.name},
                                        {"sources", *source.extent}});
    }
    facts.map.args.emplace_back(Name{slot.name});
    facts.map.args.emplace_back(Name{source.name});
  }
  HP_REQUIRE_OK(require_other_layout(state.form, facts.axis, facts.map));
  return facts;
}

ScheduleState apply(ScheduleState state, const RouteLayoutFacts& facts) {
  set_layout(state.form, facts.axis, facts.map);
  return state;
}

}  // namespace harpe
