#include "compile/certify.h"

#include <set>
#include <vector>

#include "compile/summary.h"
#include "ir/blocks.h"
#include "lower/lower.h"
#include "plan/slots.h"
#include "support/units.h"
#include "verify/fences.h"
#include "verify/model.h"
#include "verify/order.h"
#include "verify/reduced.h"
#include "verify/residency.h"
#include "verify/resolved.h"
#include "verify/structure.h"
#include "verify/words.h"

namespace harpe {
namespace {

// The checks of all ranks that do not execute blocks.
Checked<Ok> check_full_size(const Plan& plan, const VerifyOptions& options) {
  HP_TRY(const verifier::Model model, verifier::Model::make(plan.program, plan.mesh, plan.form));
  HP_REQUIRE_OK(verifier::check_ids(plan, model));
  HP_TRY(const verifier::Resolved resolved, verifier::Resolved::make(plan, model));
  HP_REQUIRE_OK(verifier::check_tasks(plan, model, resolved));
  HP_REQUIRE_OK(verifier::check_groups(plan, model));
  HP_REQUIRE_OK(verifier::check_signals(plan, model));
  HP_REQUIRE_OK(verifier::check_memory(plan, model, resolved, options.memory_limit_bytes));
  const verifier::Words words(plan, model);
  HP_TRY(const verifier::Order order, verifier::Order::make(plan, words));
  HP_REQUIRE_OK(verifier::check_fences(plan, words));
  HP_REQUIRE_OK(verifier::check_residency(plan, words, order, options.sm_count));
  return verifier::check_bytes(plan, model, resolved);
}

// A small likeness of a schedule, proved block by block.
struct SmallPlan {
  std::string mesh;  // as a question names it
  Plan plan;
  std::int64_t blocks_checked = 0;
};

Checked<std::vector<SmallPlan>> certify_cases(const Program& program, const Mesh& mesh,
                                              const NormalForm& form,
                                              const VerifyOptions& options) {
  HP_TRY(const std::vector<ReducedCase> cases, reduced_cases(program, mesh, form));
  std::vector<SmallPlan> plans;
  for (const ReducedCase& small : cases) {
    const std::string name = print_mesh_option(small.mesh);
    const auto in_likeness = [&](Diag diag) {
      return with_note(std::move(diag),
                       "in the reduced likeness of this schedule on `" + name + "`");
    };
    LowerOptions lowering;
    lowering.limit = options.limit;
    Checked<Plan> plan = lower(small.program, small.mesh, small.form, lowering);
    if (!plan.ok()) return in_likeness(std::move(plan).error());
    Checked<Certificate> certificate = verify(
        *plan,
        {.memory_limit_bytes = std::nullopt, .sm_count = options.sm_count, .limit = options.limit});
    if (!certificate.ok()) return in_likeness(std::move(certificate).error());
    plans.push_back({name, std::move(plan).value(), certificate->blocks_checked});
  }
  return plans;
}

void add_cases(Certificate& certificate, const std::vector<SmallPlan>& plans) {
  for (const SmallPlan& small : plans) {
    certificate.cases.push_back(small.mesh);
    certificate.blocks_checked += small.blocks_checked;
  }
}

Checked<Certificate> certify_reduced(const Plan& plan, const VerifyOptions& options) {
  HP_REQUIRE_OK(check_full_size(plan, options));
  HP_TRY(const std::vector<SmallPlan> small,
         certify_cases(plan.program, plan.mesh, plan.form, options));
  Certificate out{
      .level = VerifyLevel::Reduced,
      .cases = {},
      .has_plan = true,
      .tasks = static_cast<std::int64_t>(plan.tasks.size()),
      .happens_before_edges = static_cast<std::int64_t>(plan.syncs.size() + plan.barriers.size()),
      .blocks_checked = 0,
      .peak_bytes = arena_bytes(plan)};
  add_cases(out, small);
  return out;
}

// What distinguishes the slots of a rank, apart from sizes.
struct SlotKind {
  std::string name;
  std::string buffer;
  DType dtype = DType::F32;
  std::vector<bool> holds;
  auto operator<=>(const SlotKind&) const = default;
};

std::set<SlotKind> slots_of(const Plan& plan) {
  std::set<SlotKind> slots;
  for (const Alloc& alloc : plan.allocs) {
    slots.insert({alloc.name, alloc.buffer, alloc.dtype, alloc.holds});
  }
  return slots;
}

// A rank's slots at full size; none if other sizes have other slots.
struct SlotMemory {
  std::int64_t bytes = 0;
  std::string largest;
  std::int64_t largest_bytes = 0;
};

Checked<std::optional<SlotMemory>> memory_of(const Program& program, const Mesh& mesh,
                                             const NormalForm& form,
                                             const std::vector<SmallPlan>& small) {
  const std::set<SlotKind> slots = slots_of(small.front().plan);
  if (small.size() < 2 || slots != slots_of(small.back().plan)) return std::optional<SlotMemory>();
  HP_TRY(const Blocks blocks, Blocks::make(program, mesh, form));
  SlotMemory memory;
  for (const SlotKind& slot : slots) {
    const int buffer = blocks.find_buffer(slot.buffer);
    const BufferTable& table = blocks.buffers()[static_cast<std::size_t>(buffer)];
    // The lowering may split an axis further than the form does (D14).
    if (table.digits.size() != slot.holds.size()) return std::optional<SlotMemory>();
    const std::int64_t bytes = max_elements(blocks, buffer, slot.holds) * size_in_bytes(slot.dtype);
    const std::int64_t aligned = (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
    memory.bytes = saturating_add(memory.bytes, aligned);
    if (bytes <= memory.largest_bytes) continue;
    memory.largest = slot.name;
    memory.largest_bytes = bytes;
  }
  return std::optional(std::move(memory));
}

}  // namespace

Checked<Certificate> certify_schedule(const Program& program, const Mesh& mesh,
                                      const NormalForm& form, const VerifyOptions& options) {
  HP_REQUIRE_OK(check_rules(program, mesh, form));
  Certificate out;
  out.level = VerifyLevel::Reduced;
  out.has_plan = false;
  HP_TRY(const std::vector<SmallPlan> small, certify_cases(program, mesh, form, options));
  add_cases(out, small);
  HP_TRY(const std::optional<SlotMemory> memory, memory_of(program, mesh, form, small));
  if (!memory) return out;
  out.peak_bytes = memory->bytes;
  const std::optional<std::int64_t> limit = options.memory_limit_bytes;
  if (!limit || memory->bytes <= *limit) return out;
  return make_diag(DiagCode::V601, {{"rank", 0},
                                    {"need", memory->bytes},
                                    {"limit", *limit},
                                    {"over", memory->bytes - *limit},
                                    {"largest", memory->largest},
                                    {"bytes", memory->largest_bytes}});
}

Checked<Certificate> prove(const Plan& plan, const TimeLimit& limit) {
  VerifyOptions options;
  options.limit = limit;
  Checked<Certificate> whole = certify(plan, level_for(plan), options);
  if (whole.ok() || whole.error().code != DiagCode::V203) return whole;
  return certify_schedule(plan.program, plan.mesh, plan.form, options);
}

std::string coverage_of(const Certificate& certificate) {
  if (certificate.level == VerifyLevel::Full) return "every block of every rank";
  std::string text = "every block on";
  for (const std::string& small : certificate.cases) {
    text += (&small == &certificate.cases.front() ? " " : " and ") + small;
  }
  if (certificate.has_plan) return text + "; at full size shape, order, SMs and memory";
  return text + "; at full size the rules of the schedule" +
         (certificate.peak_bytes > 0 ? " and memory" : "");
}

VerifyLevel level_for(const Plan& plan) {
  const bool is_small =
      plan.mesh.ranks() <= kFullRanks || static_cast<std::int64_t>(plan.tasks.size()) <= kFullTasks;
  return is_small ? VerifyLevel::Full : VerifyLevel::Reduced;
}

Checked<Ok> check_derived(const Plan& plan, const std::string& path) {
  const Checked<Plan> derived = lower(plan.program, plan.mesh, plan.form);
  if (derived.ok() && *derived == plan) return Ok{};
  return make_diag(DiagCode::U124, {{"path", path}});
}

Checked<Certificate> certify(const Plan& plan, VerifyLevel level, const VerifyOptions& options) {
  return level == VerifyLevel::Full ? verify(plan, options) : certify_reduced(plan, options);
}

}  // namespace harpe
