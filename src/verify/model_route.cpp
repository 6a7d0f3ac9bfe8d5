#include <algorithm>

#include "verify/model_builder.h"

// Routes at block level (commir.md 8): which blocks may meet depends on the digits that a slab
// layout ties and on the experts' digits. Every other digit of a routed operand takes all its
// values.
namespace harpe::verifier {

// Routes that relate (expert, slot) to (token, choice); a nest through any other route is V202.
void ModelBuilder::add_routes() {
  for (const Decl& decl : program_.decls) {
    const auto* const route = std::get_if<Route>(&decl);
    if (route == nullptr || route->slots.size() != 2 || route->choices.size() != 2) continue;
    model_.routes.push_back({.name = route->name,
                             .expert = axis_index(route->slots[0]),
                             .slot = axis_index(route->slots[1]),
                             .token = axis_index(route->choices[0]),
                             .choice = axis_index(route->choices[1])});
  }
}

// `layout C slab(c0, t0, ...)`: pairs of a slot digit and a token digit.
Checked<Ok> ModelBuilder::tie_slots() {
  for (const Layout& layout : form_.layouts) {
    if (layout.map.function != "slab") continue;
    std::vector<std::string> names;
    for (const Scalar& scalar : layout.map.args) {
      const auto* const name = std::get_if<Name>(&scalar);
      if (name != nullptr) names.push_back(name->text);
    }
    if (names.empty() || names.size() % 2 != 0 || names.size() != layout.map.args.size()) {
      return misfit("layout `slab` of axis `" + layout.axis + "` takes pairs of digits");
    }
    for (std::size_t i = 0; i < names.size(); i += 2) {
      HP_REQUIRE_OK(tie(names[i], names[i + 1], axis_index(layout.axis)));
    }
  }
  return Ok{};
}

Checked<Ok> ModelBuilder::tie(const std::string& slot, const std::string& source, int axis) {
  const int own = model_.find_digit(slot);
  const int token = model_.find_digit(source);
  const std::string pair = "layout `slab` ties `" + slot + "` to `" + source + "`, ";
  if (own < 0 || token < 0) return misfit(pair + "one of which is no digit");
  DigitModel& digit = model_.digits[static_cast<std::size_t>(own)];
  const DigitModel& wanted = model_.digits[static_cast<std::size_t>(token)];
  const bool connected = std::ranges::any_of(model_.routes, [&](const RouteModel& route) {
    return route.slot == axis && route.slot == digit.axis && route.token == wanted.axis;
  });
  if (!connected) return misfit(pair + "and no route has its slots and tokens on their axes");
  if (digit.extent != wanted.extent) {
    return misfit(pair + "which have " + std::to_string(digit.extent) + " and " +
                  std::to_string(wanted.extent) + " values");
  }
  const bool again =
      digit.source >= 0 || std::ranges::any_of(model_.digits, [&](const DigitModel& other) {
        return other.axis == axis && other.source == token;
      });
  if (again) return misfit(pair + "one of which is tied already");
  digit.source = token;
  return Ok{};
}

Checked<int> ModelBuilder::route_of(const Nest& nest) const {
  int found = -1;
  for (const Stmt& stmt : nest.stmts) {
    for (const Access& operand : stmt.operands) {
      for (const Rename& rename : operand.renames) {
        if (rename.member.empty()) continue;
        const auto route =
            static_cast<int>(std::ranges::find(model_.routes, rename.source, &RouteModel::name) -
                             model_.routes.begin());
        if (route == static_cast<int>(model_.routes.size())) {
          return make_diag(DiagCode::V202,
                           {{"what", "nest `" + nest.name + "`, whose route `" + rename.source +
                                         "` does not relate (expert, slot) to (token, choice),"}});
        }
        if (found >= 0 && found != route) {
          return make_diag(DiagCode::V202,
                           {{"what", "nest `" + nest.name + "`, which goes through two routes,"}});
        }
        found = route;
      }
    }
  }
  return found;
}

Checked<NestModel> ModelBuilder::make_nest(const Nest& line) const {
  HP_TRY(const int route, route_of(line));
  std::vector<std::string> axes = line.over;
  bool runs_experts = false;
  if (route >= 0) {
    const RouteModel& through = model_.routes[static_cast<std::size_t>(route)];
    const auto over = [&](int axis) {
      return std::ranges::find(axes, model_.axes[static_cast<std::size_t>(axis)].name);
    };
    const auto choice = over(through.choice);
    runs_experts = over(through.token) != axes.end() && choice != axes.end();
    if (runs_experts && over(through.expert) != axes.end()) {
      return make_diag(DiagCode::V202, {{"what", "nest `" + line.name + "`, over the choices of `" +
                                                     through.name + "` and over its experts,"}});
    }
    if (runs_experts) *choice = model_.axes[static_cast<std::size_t>(through.expert)].name;
  }
  NestModel out{.name = line.name,
                .space = {},
                .runs_experts = runs_experts,
                .route = route,
                .axes = {},
                .first_statement = static_cast<int>(model_.statements.size()),
                .statement_count = 0};
  HP_TRY(out.space,
         radix_over(axes, "the iteration space of nest `" + line.name + "`", kMaxIterations));
  out.axes = views_of(out.space);
  return out;
}

int ModelBuilder::through_route(const Rename& rename, int digit, const NestModel& nest) const {
  const RouteModel& route = model_.routes[static_cast<std::size_t>(nest.route)];
  const int member = axis_index(rename.member);
  const int same = counterpart(digit, member);
  if (same < 0) return -1;
  if (member == route.expert) return nest.runs_experts ? same : -1;
  if (member == route.slot) {
    const int source = model_.digits[static_cast<std::size_t>(same)].source;
    const bool here =
        source >= 0 && model_.digits[static_cast<std::size_t>(source)].axis == route.token;
    return here ? source : -1;
  }
  for (const int slot : model_.axes[static_cast<std::size_t>(route.slot)].digits) {
    if (model_.digits[static_cast<std::size_t>(slot)].source == same) return slot;
  }
  return -1;
}

}  // namespace harpe::verifier
