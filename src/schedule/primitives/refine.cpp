#include "schedule/primitives/refine.h"

#include <algorithm>

namespace harpe {
namespace {

std::string print_factors(const std::vector<std::int64_t>& factors) {
  std::string out;
  for (const std::int64_t factor : factors) {
    out += (out.empty() ? "" : " * ") + std::to_string(factor);
  }
  return out.empty() ? "nothing" : out;
}

bool is_product(const std::vector<std::int64_t>& factors, std::int64_t size) {
  std::int64_t rest = size;
  for (const std::int64_t factor : factors) {
    if (factor < 1 || rest % factor != 0) return false;
    rest /= factor;
  }
  return rest == 1;
}

}  // namespace

Checked<RefineAxisFacts> check(const ScheduleState& state, const RefineAxis& step) {
  if (step.mesh != state.mesh.name) {
    return make_diag(DiagCode::S121, {{"mesh", step.mesh}, {"expected", state.mesh.name}});
  }
  const auto refined_before = std::ranges::find_if(state.form.refines, [&](const Refine& line) {
    return line.axis == step.axis ||
           std::ranges::find(line.parts, step.axis, &MeshAxis::name) != line.parts.end();
  });
  if (refined_before != state.form.refines.end()) {
    return make_diag(DiagCode::S122, {{"axis", step.axis}, {"whole", refined_before->axis}});
  }
  HP_TRY(const std::int64_t size, require_mesh_axes(state, {step.axis}));
  if (const std::string use = find_use_of_mesh_axis(state.form, step.axis); !use.empty()) {
    return make_diag(DiagCode::S123, {{"axis", step.axis}, {"use", use}});
  }
  if (step.factors.size() < 2 || !is_product(step.factors, size)) {
    return make_diag(
        DiagCode::S124,
        {{"axis", step.axis}, {"size", size}, {"factors", print_factors(step.factors)}});
  }
  if (step.parts.size() != step.factors.size()) {
    return make_diag(
        DiagCode::S125,
        {{"axis", step.axis}, {"factors", step.factors.size()}, {"given", step.parts.size()}});
  }
  HP_REQUIRE_OK(require_fresh_names(state, step.parts));
  RefineAxisFacts facts{Refine{step.axis, {}}};
  for (std::size_t i = 0; i < step.parts.size(); ++i) {
    facts.line.parts.push_back({step.parts[i], step.factors[i]});
  }
  return facts;
}

ScheduleState apply(ScheduleState state, const RefineAxisFacts& facts) {
  state.form.refines.push_back(facts.line);
  return state;
}

}  // namespace harpe
