#include "schedule/named/registry.h"

#include <algorithm>
#include <array>

#include "offers/offers.h"
#include "schedule/named/attention.h"
#include "schedule/named/decode.h"
#include "schedule/named/gemm.h"
#include "schedule/named/moe.h"
#include "schedule/primitive.h"
#include "schedule/state.h"

namespace harpe {
namespace {

struct Entry {
  std::string_view op;
  std::span<const NamedSchedule> (*schedules)();
  // For `auto`: a fixed schedule, or one that `choose` finds.
  std::string_view usual;
  Checked<Script> (*choose)(const Program& program, const Mesh& mesh) = nullptr;
};

constexpr std::array kOperators = {
    Entry{"gemm", &gemm_schedules, "ring"},
    Entry{"ag_gemm", &ag_gemm_schedules, "ring"},
    Entry{"gemm_rs", &gemm_rs_schedules, "ring"},
    Entry{"gemm_ar", &gemm_ar_schedules, "bulk"},
    Entry{"gemm_ar_norm", &gemm_ar_norm_schedules, "bulk"},
    Entry{"attention", &attention_schedules, "", &choose_attention},
    Entry{"attention_bwd", &attention_backward_schedules, "", &choose_attention_backward},
    Entry{"decode", &decode_schedules, "bulk"},
    Entry{"moe", &moe_schedules, "push"},
    Entry{"moe_capped", &moe_schedules, "push"},
};

constexpr std::size_t kMaxAlternatives = 3;

// The first few schedules of the operator that apply.
std::string list_alternatives(std::string_view op, const Program& program, const Mesh& mesh) {
  std::string out;
  std::size_t listed = 0;
  for (const NamedSchedule& schedule : schedules_of(op)) {
    if (listed == kMaxAlternatives) break;
    if (!schedule.generate(program, mesh).ok()) continue;
    out += (out.empty() ? "`" : ", `") + std::string(schedule.name) + "`";
    ++listed;
  }
  return out.empty() ? "fewer ranks" : out;
}

Checked<Script> generate(std::string_view op, const NamedSchedule& schedule, const Program& program,
                         const Mesh& mesh) {
  auto script = schedule.generate(program, mesh);
  if (script.ok()) return script;
  Diag refusal = std::move(script).error();
  for (DiagArg& argument : refusal.args) {
    if (argument.name == "alternatives") argument.value = list_alternatives(op, program, mesh);
  }
  return refusal;
}

Checked<Ok> require_operator(std::string_view op) {
  if (!schedules_of(op).empty()) return Ok{};
  return make_diag(DiagCode::S602,
                   {{"op", op}, {"hint", suggestion(op, operators_with_schedules())}});
}

Checked<Script> generate_named(std::string_view op, std::string_view name, const Program& program,
                               const Mesh& mesh) {
  std::vector<std::string> names;
  for (const NamedSchedule& schedule : schedules_of(op)) {
    if (schedule.name == name) return generate(op, schedule, program, mesh);
    names.emplace_back(schedule.name);
  }
  return make_diag(DiagCode::S601, {{"op", op},
                                    {"name", name},
                                    {"hint", suggestion(name, names)},
                                    {"schedules", quote_list(names)}});
}

// Patches every nest that the kernel fits; if it fits none, the last nest, where it is then
// refused.
void patch_leaves(Script& script, std::string_view kernel, const Program& program) {
  const KernelOffer* const known = find_offer(kernel);
  std::vector<std::string> nests;
  for (const Nest& nest : program.nests) {
    const bool fits = known != nullptr && std::ranges::all_of(nest.stmts, [&](const Stmt& stmt) {
                        return is_leaf(stmt.leaf, known->leaf);
                      });
    if (fits) nests.push_back(nest.name);
  }
  if (nests.empty()) nests.push_back(program.nests.back().name);
  for (const std::string& nest : nests) {
    script.steps.push_back(
        to_step(Patch{.nest = nest, .kernel = Quoted{std::string(kernel)}, .sm = std::nullopt}));
  }
  script.name += "_" + std::string(kernel);
}

}  // namespace

std::span<const NamedSchedule> schedules_of(std::string_view op) {
  const auto* found = std::ranges::find(kOperators, op, &Entry::op);
  return found == kOperators.end() ? std::span<const NamedSchedule>{} : found->schedules();
}

std::vector<std::string> operators_with_schedules() {
  std::vector<std::string> names;
  for (const Entry& entry : kOperators) names.emplace_back(entry.op);
  return names;
}

ScheduleName parse_schedule_name(std::string_view name) {
  const std::size_t end = name.find('+');
  ScheduleName parsed{.base = name.substr(0, end), .kernels = {}};
  std::size_t at = end;
  while (at != std::string_view::npos) {
    const std::size_t next = name.find('+', at + 1);
    parsed.kernels.push_back(name.substr(at + 1, next - at - 1));
    at = next;
  }
  return parsed;
}

Checked<Script> generate_schedule(std::string_view op, std::string_view name,
                                  const Program& program, const Mesh& mesh) {
  HP_REQUIRE_OK(require_operator(op));
  const std::string_view base = parse_schedule_name(name).base;
  HP_TRY(Script script,
         base == "auto" ? choose_auto(op, program, mesh) : generate_named(op, base, program, mesh));
  patch_kernels(script, name, program);
  return script;
}

void patch_kernels(Script& script, std::string_view name, const Program& program) {
  for (const std::string_view kernel : parse_schedule_name(name).kernels) {
    patch_leaves(script, kernel, program);
  }
}

std::vector<Applicability> find_applicable(std::string_view op, const Program& program,
                                           const Mesh& mesh) {
  std::vector<Applicability> found;
  for (const NamedSchedule& schedule : schedules_of(op)) {
    found.push_back({schedule.name, schedule.summary, generate(op, schedule, program, mesh)});
  }
  return found;
}

Checked<Script> choose_auto(std::string_view op, const Program& program, const Mesh& mesh) {
  HP_REQUIRE_OK(require_operator(op));
  const auto* entry = std::ranges::find(kOperators, op, &Entry::op);
  if (entry->choose != nullptr) return entry->choose(program, mesh);
  return generate_named(op, entry->usual, program, mesh);
}

}  // namespace harpe
