#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "lower/lower.h"
#include "machine/rates.h"
#include "plan/work.h"
#include "schedule/fit.h"
#include "search/canonical.h"
#include "search/evaluator.h"
#include "support/check.h"
#include "tests/unit/search/cases.h"
#include "verify/verify.h"

namespace harpe {
namespace rediscovery_test {

// A schedule without details of its moves: depths, initiators, transports, signals, wires.
NormalForm bare(NormalForm form) {
  for (NestForm& nest : form.nests) {
    for (NestItem& item : nest.items) {
      auto* move = std::get_if<Move>(&item);
      if (move == nullptr) continue;
      const bool relays = move->how == How::Relay;
      Move plain;
      plain.kind = move->kind;
      plain.buffer = move->buffer;
      plain.over = move->over;
      plain.how = move->how;
      if (relays) plain.by = Initiator::Src;
      if (relays) plain.depth = 2;
      *move = plain;
    }
  }
  return form;
}

// The work of a bare schedule's plan, regardless of ranks: how often each amount is computed, and
// how often each number of bytes crosses each level, by kind of task. Equal texts mean equal work,
// even if digits are ordered differently.
std::string deeds_of(const Case& one, const NormalForm& form) {
  const Checked<Plan> plan = lower(one.program, one.mesh, bare(form));
  if (!plan.ok()) return "";
  const PlanWork work(*plan);
  std::map<std::string, int> counts;
  for (const Task& task : plan->tasks) {
    if (task.kind == TaskKind::Compute) {
      ++counts["compute " + std::to_string(work.of(task).flops)];
    }
    if (task.bytes == 0) continue;
    const std::int32_t to = plan->queues[task.queue.index()].rank.value;
    std::set<int> levels;
    for (const auto* refs : {&task.reads, &task.writes}) {
      for (const Ref& ref : *refs) {
        const std::int32_t rank = plan->allocs[ref.alloc.index()].rank.value;
        if (rank != to) levels.insert(level_between(one.machine, rank, to));
      }
    }
    std::string key = std::string(print(task.kind)) + " " + std::to_string(task.bytes) + " at";
    for (const int level : levels) key += " " + std::to_string(level);
    ++counts[key];
  }
  std::string out;
  for (const auto& [key, count] : counts) out += std::to_string(count) + " x " + key + "; ";
  return out;
}

// The axis that each part of the refined mesh divides.
std::vector<std::string> dealt(const Case& one, const NormalForm& form) {
  const Mesh mesh = refined(one.mesh, form);
  std::map<std::string, std::string> axis_of;
  for (const Split& split : form.splits) {
    for (const Digit& digit : split.digits) axis_of[digit.name] = split.axis;
  }
  const NestForm& nest = *find_nest(form, one.problem.nest);
  std::vector<std::string> out;
  for (const MeshAxis& axis : mesh.axes) {
    std::string found;
    for (const NestItem& item : nest.items) {
      const Par* par = std::get_if<Par>(&item);
      if (par == nullptr) continue;
      const bool here = std::ranges::find(par->axes, axis.name) != par->axes.end();
      if (here) found = axis_of[par->digit];
    }
    out.push_back(found + ":" + std::to_string(axis.size));
  }
  return out;
}

std::vector<std::string> dealt(const Case& one, const Candidate& candidate) {
  std::vector<std::string> out;
  for (int part = 0; part < candidate.parts; ++part) {
    const CandidatePart& at = candidate.part[static_cast<std::size_t>(part)];
    out.push_back(one.problem.axes[static_cast<std::size_t>(at.par)].name + ":" +
                  std::to_string(at.size));
  }
  return out;
}

// Joins parts that a digit spans together or that divide the same axis.
std::vector<std::string> joined(std::vector<std::string> parts) {
  std::map<std::string, std::int64_t> sizes;
  for (const std::string& part : parts) {
    const std::size_t colon = part.find(':');
    auto [at, first] = sizes.try_emplace(part.substr(0, colon), 1);
    at->second *= std::stoll(part.substr(colon + 1));
  }
  std::vector<std::string> out;
  for (const auto& [axis, size] : sizes) out.push_back(axis + ":" + std::to_string(size));
  return out;
}

enum class Found { Nowhere, ByDeeds, ByText };

Found find_in_space(const Case& one, const NormalForm& wanted) {
  const std::string text = canonical_text(one.program, bare(wanted));
  const std::string deeds = deeds_of(one, wanted);
  HP_CHECK(!deeds.empty(), "a named schedule lowers");
  const auto parts = joined(dealt(one, wanted));
  const std::string homes = homes_of(one.program, one.mesh, wanted);
  Found found = Found::Nowhere;
  for (const Candidate& candidate : candidates_of(one)) {
    if (joined(dealt(one, candidate)) != parts) continue;
    const NormalForm form = form_of(one.problem, one.machine, candidate);
    if (homes_of(one.program, one.mesh, form) != homes) continue;
    if (canonical_text(one.program, bare(form)) == text) return Found::ByText;
    if (found == Found::Nowhere && deeds_of(one, form) == deeds) found = Found::ByDeeds;
  }
  return found;
}

struct Wanted {
  std::string schedule;
  CaseText text;
  Machine machine;
};

const std::vector<std::string> kCausal = {"seq=32", "heads=4", "head_dim=4", "causal=true"};
const std::vector<std::string> kHeads = {"seq=32", "heads=4", "head_dim=4"};
const std::vector<std::string> kProduct = {"m=32", "n=32", "k=32"};
const std::vector<std::string> kDecode = {"batch=4", "kv=64", "heads=4", "head_dim=4"};

std::vector<Wanted> wanted_schedules() {
  const Machine flat = flat_machine("switch", 8, 100);
  const Machine nodes = node_machine({});
  const Contract own = Contract::Standard;
  return {
      {"ring", {"attention", kHeads, "cp=4"}, flat},
      {"zigzag_ring", {"attention", kCausal, "cp=4"}, flat},
      {"ulysses", {"attention", kHeads, "cp=4"}, flat},
      {"usp", {"attention", kHeads, "cp=4"}, flat},
      {"double_ring", {"attention", kHeads, "cp=4"}, flat},
      {"allgather", {"attention", kHeads, "cp=4"}, flat},
      {"q_rotation", {"attention", kHeads, "cp=4"}, flat},
      {"hybrid", {"attention", kHeads, "cp=4"}, flat},
      {"mercury_novel8", {"attention", kHeads, "cp=4"}, flat},
      {"tree", {"attention", kHeads, "cp=4", "", own, 0, "tree"}, flat},
      {"usp", {"attention", kHeads, "node=2,gpu=2", "", own, 0}, nodes},
      {"double_ring", {"attention", kHeads, "node=2,gpu=2", "", own, 0}, nodes},
      {"hybrid", {"attention", kHeads, "node=2,gpu=2", "", own, 0}, nodes},
      {"mercury_novel8", {"attention", kHeads, "node=2,gpu=2", "", own, 0}, nodes},
      {"mercury_best_latency",
       {"attention", kHeads, "a=2,b=2,c=2", "", own, 0, "mercury_best_latency"},
       flat},
      {"ring", {"ag_gemm", kProduct, "tp=4"}, flat},
      {"bulk", {"ag_gemm", kProduct, "tp=4"}, flat},
      {"fetch", {"ag_gemm", kProduct, "tp=4"}, flat},
      {"ring", {"gemm_rs", kProduct, "tp=4"}, flat},
      {"bulk", {"gemm_rs", kProduct, "tp=4"}, flat},
      {"push", {"gemm_rs", kProduct, "tp=4"}, flat},
      {"fetch", {"gemm_rs", kProduct, "tp=4"}, flat},
      {"hierarchical", {"gemm_rs", kProduct, "node=2,gpu=2", "", own, 0}, nodes},
      {"grid2d", {"gemm", kProduct, "node=2,gpu=2", "", own, 0, "grid2d"}, nodes},
      {"push", {"decode", kDecode, "tp=4"}, flat},
      {"bulk", {"decode", kDecode, "tp=4"}, flat},
      {"hierarchical", {"decode", kDecode, "node=2,gpu=2", "", own, 0}, nodes},
  };
}

TEST(Rediscovery, finds_every_published_schedule_in_the_space) {
  for (const Wanted& wanted : wanted_schedules()) {
    const auto one = make_case(wanted.text, wanted.machine);
    const Found found = find_in_space(*one, named_form(*one, wanted.schedule));
    std::printf("%-15s %-70s %s\n", wanted.schedule.c_str(), print(wanted.text).c_str(),
                found == Found::ByText    ? "by its text"
                : found == Found::ByDeeds ? "by what it does"
                                          : "NOT FOUND");
    EXPECT_NE(found, Found::Nowhere) << wanted.schedule << " of " << print(wanted.text);
  }
}

TEST(Rediscovery, finds_shift_reduce_which_has_no_name) {
  const auto one = make_case({"attention", kHeads, "cp=4"}, flat_machine("switch", 4, 100));
  const auto all = candidates_of(*one);
  const auto found = std::ranges::find_if(all, [&](const Candidate& candidate) {
    return describe(one->problem, candidate) == "Skv:4 bulk q, ring o lse";
  });
  ASSERT_NE(found, all.end());
  const Checked<Plan> plan =
      lower(one->program, one->mesh, form_of(one->problem, one->machine, *found));
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(verify(*plan).ok());
}

// A case that a family should win. The search must take the family or something no slower; `near`
// bounds how much faster that may be.
struct Ground {
  Wanted wanted;
  double near = 2;
};

std::vector<std::string> attention(std::vector<std::string> more) {
  more.insert(more.begin(), {"head_dim=128", "seq=16384"});
  return more;
}

std::vector<Ground> grounds() {
  const Machine neighbours = flat_machine("ring", 8, 50);
  const Machine fast = flat_machine("switch", 8, 400);
  const Machine slow = flat_machine("switch", 8, 20);
  const Machine nodes = node_machine({.nodes = 2, .gpus = 4, .slowness = 10});
  const std::vector<std::string> product = {"m=8192", "n=8192", "k=8192"};
  const std::vector<std::string> decode = {"batch=64", "kv=8192", "heads=32", "kv_heads=8"};
  const auto heads = attention({"heads=16"});
  const auto causal = attention({"heads=16", "causal=true"});
  const auto few = attention({"heads=8", "kv_heads=1"});
  const auto many = std::vector<std::string>{"head_dim=128", "seq=2048", "heads=32", "batch=4"};
  const std::string two = "node=2,gpu=4";
  const Contract own = Contract::Standard;
  return {
      {{"ring", {"attention", heads, "cp=8"}, neighbours}},
      {{"zigzag_ring", {"attention", causal, "cp=8"}, neighbours}},
      {{"ulysses", {"attention", heads, "cp=8"}, fast}},
      {{"usp", {"attention", heads, two}, nodes}},
      {{"double_ring", {"attention", few, two}, nodes}},
      {{"allgather", {"attention", few, "cp=8"}, fast}},
      {{"hybrid", {"attention", few, two}, nodes}},
      {{"q_rotation", {"attention", {"seq=512", "kv_seq=65536", "heads=8"}, "cp=8"}, slow}},
      {{"mercury_novel8", {"attention", heads, two}, nodes}},
      {{"mercury_best_latency",
        {"attention", heads, "a=2,b=2,c=2", "", own, 0, "mercury_best_latency"},
        nodes}},
      {{"tree",
        {"attention", {"seq=64", "kv_seq=65536", "heads=8"}, "cp=8", "", own, 1, "tree"},
        slow}},
      {{"ring", {"ag_gemm", product, "tp=8"}, neighbours}},
      {{"bulk", {"ag_gemm", {"m=256", "n=8192", "k=8192"}, "tp=8"}, fast}},
      {{"fetch", {"ag_gemm", product, "tp=8"}, fast}},
      {{"ring", {"gemm_rs", product, "tp=8"}, neighbours}},
      {{"bulk", {"gemm_rs", {"m=256", "n=8192", "k=8192"}, "tp=8"}, fast}},
      {{"push", {"gemm_rs", product, "tp=8"}, fast}},
      {{"fetch", {"gemm_rs", product, "tp=8"}, fast}},
      {{"hierarchical", {"gemm_rs", product, two}, nodes}},
      {{"grid2d", {"gemm", product, "node=2,gpu=4", "", own, 0, "grid2d"}, nodes}},
      {{"push", {"decode", decode, "tp=8"}, slow}},
      {{"bulk", {"decode", decode, "tp=8"}, fast}},
      {{"hierarchical", {"decode", decode, two}, nodes}},
  };
}

TEST(Rediscovery, chooses_them_or_what_is_as_fast_where_they_should_win) {
  for (const Ground& ground : grounds()) {
    const auto one = make_case(ground.wanted.text, ground.wanted.machine);
    const auto result = search(one->program, one->mesh, one->machine, one->options());
    ASSERT_TRUE(result.ok()) << render(result.error());
    SimulationEvaluator evaluator(one->program, one->mesh, one->machine, {});
    const NormalForm form = named_form(*one, ground.wanted.schedule);
    const auto named = evaluator.evaluate(fit_transports(form, one->mesh, one->machine).form);
    ASSERT_TRUE(named.ok()) << render(named.error());
    const Evaluated& best = result->top.front();
    const double ratio = named->time.seconds() / best.time().seconds();
    std::printf("%-20s %-75s %5.2f x of %s\n", ground.wanted.schedule.c_str(),
                print(ground.wanted.text).c_str(), ratio, best.label.c_str());
    EXPECT_GE(ratio, 1) << ground.wanted.schedule << " of " << print(ground.wanted.text);
    EXPECT_LE(ratio, ground.near) << ground.wanted.schedule << " of " << print(ground.wanted.text);
  }
}

TEST(Rediscovery, takes_a_ring_where_memory_is_short) {
  const auto one =
      make_case({"attention", attention({"heads=16"}), "cp=8"}, flat_machine("switch", 8, 400));
  SimulationEvaluator evaluator(one->program, one->mesh, one->machine, {});
  const auto ring = evaluator.evaluate(named_form(*one, "ring"));
  const auto gather = evaluator.evaluate(named_form(*one, "allgather"));
  ASSERT_TRUE(ring.ok() && gather.ok());
  ASSERT_LT(ring->memory_bytes, gather->memory_bytes);
  SearchOptions options = one->options();
  options.memory_limit = ring->memory_bytes;
  const auto result = search(one->program, one->mesh, one->machine, options);
  ASSERT_TRUE(result.ok());
  EXPECT_LE(result->top.front().time(), ring->time);
  EXPECT_LE(result->top.front().memory_bytes, ring->memory_bytes);
}

TEST(Rediscovery, adds_up_inside_the_node_before_rows_cross_slow_rails) {
  const Machine nodes = node_machine({.nodes = 2, .gpus = 4, .slowness = 40});
  const auto one = make_named_case(
      {"moe", {"tokens=8192", "hidden=2048", "experts=32", "topk=8"}, "node=2,gpu=4"}, nodes);
  const auto result = search(one->program, one->mesh, one->machine, one->options());
  ASSERT_TRUE(result.ok()) << render(result.error());
  for (const Evaluated& each : result->top) {
    std::printf("%s %.1f us\n", each.label.c_str(), each.time().microseconds());
  }
  const std::string& best = result->top.front().label;
  EXPECT_TRUE(best.starts_with("hierarchical_reduce") || best.starts_with("dedup")) << best;
}

}  // namespace rediscovery_test
}  // namespace harpe
