#include "run/load.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "io/npy.h"
#include "leaves/leaf.h"
#include "support/check.h"

namespace harpe {
namespace {

constexpr double kNever = -1e30;  // the logit of an expert that no token chooses

double number_of(const Scalar& scalar) {
  if (const auto* const whole = std::get_if<std::int64_t>(&scalar)) {
    return static_cast<double>(*whole);
  }
  const auto* const real = std::get_if<double>(&scalar);
  HP_CHECK(real != nullptr, "the exponent of a load profile passed check_program");
  return *real;
}

// In [0, 1); equal for equal seed, name and element.
double unit(const HostTensor& noise, std::int64_t i) { return (load(noise, i) + 1) / 2; }

// ln popularity of `zipf(s)` or `uniform()`: a shuffle assigns the popularities to experts.
std::vector<double> profile_of(const Route& route, std::int64_t experts, std::uint64_t seed) {
  std::vector<double> logs(static_cast<std::size_t>(experts), 0.0);
  if (!route.load || route.load->function != "zipf") return logs;
  const double exponent = number_of(route.load->args.front());
  const HostTensor keys = random_tensor(DType::F64, {experts}, seed, route.name + " popularity");
  std::vector<std::int64_t> order(logs.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::int64_t expert) { return load(keys, expert); });
  for (std::size_t i = 0; i < order.size(); ++i) {
    logs[static_cast<std::size_t>(order[i])] = -exponent * std::log(static_cast<double>(i + 1));
  }
  return logs;
}

Checked<std::vector<double>> read_profile(const std::string& path, const Program& program,
                                          const Route& route, std::int64_t experts) {
  HP_TRY(const HostTensor tensor, read_npy(path));
  const std::string name = "the load of route " + route.name;
  if (tensor.shape != std::vector<std::int64_t>{experts}) {
    return make_diag(DiagCode::I302, {{"name", name},
                                      {"wanted", print_shape({experts})},
                                      {"path", path},
                                      {"found", print_shape(tensor.shape)}});
  }
  std::vector<double> logs;
  for (std::int64_t i = 0; i < experts; ++i) {
    const double popularity = load(tensor, i);
    if (!std::isfinite(popularity) || popularity < 0) {
      return make_diag(DiagCode::I306,
                       {{"path", path}, {"expert", i}, {"value", std::to_string(popularity)}});
    }
    logs.push_back(popularity == 0 ? kNever : std::log(popularity));
  }
  const auto positive = std::ranges::count_if(logs, [](double log) { return log > kNever; });
  const std::int64_t choices = size_of(*find_axis(program, route.choices[1]));
  if (positive >= choices) return logs;
  return make_diag(DiagCode::I308, {{"path", path}, {"positive", positive}, {"choices", choices}});
}

// Whether a leaf finds its rows by the route, so that its index has been checked.
bool is_followed(const Program& program, const Route& route) {
  return std::ranges::any_of(program.nests, [&](const Nest& nest) {
    return std::ranges::any_of(nest.stmts, [&](const Stmt& stmt) {
      const LeafContract* const leaf = find_leaf_contract(stmt.leaf);
      return leaf != nullptr && leaf->is_routed() &&
             stmt.operands[static_cast<std::size_t>(leaf->index)].buffer == route.by;
    });
  });
}

// The statement whose choosing leaf makes `buffer`, or null.
const Stmt* chooser_of(const Program& program, const std::string& buffer) {
  for (const Nest& nest : program.nests) {
    for (const Stmt& stmt : nest.stmts) {
      const bool chooses = is_leaf(stmt.leaf, Leaf::TopK) || is_leaf(stmt.leaf, Leaf::LimitChoices);
      if (chooses && stmt.targets[0].buffer == buffer) return &stmt;
    }
  }
  return nullptr;
}

bool chooses(const Program& program, const Route& route, const Buffer& input) {
  const Stmt* stmt = chooser_of(program, route.by);
  if (stmt != nullptr && is_leaf(stmt->leaf, Leaf::LimitChoices)) {
    if (stmt->operands[0].buffer == input.name) return true;
    stmt = chooser_of(program, stmt->operands[0].buffer);
  }
  return stmt != nullptr && stmt->operands[0].buffer == input.name;
}

}  // namespace

const Route* find_route_by(const Program& program, const Buffer& input) {
  for (const Decl& decl : program.decls) {
    const auto* const route = std::get_if<Route>(&decl);
    if (route == nullptr || !is_followed(program, *route)) continue;
    if (route->by == input.name || chooses(program, *route, input)) return route;
  }
  return nullptr;
}

Checked<HostTensor> draw_choices(const Program& program, const Route& route, const Buffer& input,
                                 std::uint64_t seed, const std::optional<std::string>& file) {
  const auto size = [&](const std::string& axis) { return size_of(*find_axis(program, axis)); };
  const std::int64_t experts = size(route.slots[0]);
  const std::int64_t tokens = size(route.choices[0]);
  const std::int64_t choices = size(route.choices[1]);
  std::vector<double> logs = profile_of(route, experts, seed);
  if (file) {
    HP_TRY(logs, read_profile(*file, program, route, experts));
  }
  const HostTensor noise = random_tensor(DType::F64, {tokens, experts}, seed, input.name);
  const bool is_index = !is_floating(input.dtype);
  HostTensor out = make_tensor(input.dtype, shape_of(program, input));
  std::vector<double> logits(logs.size());
  std::vector<std::int64_t> order(logs.size());
  for (std::int64_t token = 0; token < tokens; ++token) {
    for (std::int64_t e = 0; e < experts; ++e) {
      const double u = std::max(unit(noise, token * experts + e), 1e-12);
      logits[static_cast<std::size_t>(e)] =
          logs[static_cast<std::size_t>(e)] - std::log(-std::log(u));
    }
    if (!is_index) {
      for (std::int64_t e = 0; e < experts; ++e) {
        store(out, token * experts + e, logits[static_cast<std::size_t>(e)]);
      }
      continue;
    }
    std::iota(order.begin(), order.end(), 0);
    std::ranges::partial_sort(order, order.begin() + choices, std::greater<>(),
                              [&](std::int64_t e) { return logits[static_cast<std::size_t>(e)]; });
    for (std::int64_t k = 0; k < choices; ++k) {
      store(out, token * choices + k, static_cast<double>(order[static_cast<std::size_t>(k)]));
    }
  }
  return out;
}

}  // namespace harpe
