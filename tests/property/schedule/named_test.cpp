// Every named schedule of every operator, on meshes of many shapes and odd sizes. It is refused
// with a rendered reason, or its script replays to a form that lowers and verifies.

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "ir/instantiate.h"
#include "ir/text.h"
#include "lower/lower.h"
#include "ops/registry.h"
#include "schedule/named/registry.h"
#include "schedule/replay.h"
#include "verify/verify.h"

namespace harpe {
namespace {

using Sizes = std::map<std::string, std::int64_t>;

struct Problem {
  std::string op;
  Sizes sizes;
  bool causal = false;
};

Program instantiate_problem(const Problem& problem) {
  const Operator* op = find_operator(problem.op);
  HP_CHECK(op != nullptr, "no operator " + problem.op);
  Bindings bindings;
  for (const auto& [name, size] : problem.sizes) bindings[name] = size;
  if (problem.op.starts_with("attention")) {
    bindings["causal"] = Name{problem.causal ? "true" : "false"};
  }
  Checked<Program> program = instantiate(template_of(*op), bindings);
  HP_CHECK(program.ok(), program.ok() ? "" : render(program.error()));
  return std::move(program).value();
}

std::vector<Problem> all_problems() {
  std::vector<Problem> problems;
  for (const char* op : {"gemm", "ag_gemm", "gemm_rs", "gemm_ar", "gemm_ar_norm"}) {
    problems.push_back({op, {{"m", 64}, {"n", 48}, {"k", 96}}});
    problems.push_back({op, {{"m", 17}, {"n", 31}, {"k", 23}}});
    problems.push_back({op, {{"m", 2}, {"n", 9}, {"k", 3}}});
  }
  const std::vector<Sizes> shapes = {
      {{"batch", 1}, {"seq", 64}, {"heads", 8}, {"kv_heads", 8}, {"head_dim", 4}},
      {{"batch", 1}, {"seq", 37}, {"heads", 12}, {"kv_heads", 4}, {"head_dim", 4}},
      {{"batch", 2}, {"seq", 19}, {"heads", 4}, {"kv_heads", 2}, {"head_dim", 2}},
      {{"batch", 1}, {"seq", 5}, {"kv_seq", 40}, {"heads", 16}, {"kv_heads", 2}, {"head_dim", 2}},
      {{"batch", 3}, {"seq", 1}, {"kv_seq", 33}, {"heads", 2}, {"kv_heads", 1}, {"head_dim", 2}}};
  for (const Sizes& shape : shapes) {
    problems.push_back({"attention", shape, false});
    problems.push_back({"attention", shape, true});
    problems.push_back({"attention_bwd", shape, true});
  }
  problems.push_back({"decode", {{"batch", 3}, {"kv", 37}, {"heads", 12}, {"kv_heads", 4}}});
  problems.push_back({"decode", {{"batch", 1}, {"kv", 5}, {"heads", 2}, {"kv_heads", 1}}});
  return problems;
}

std::vector<Mesh> all_meshes() {
  std::vector<Mesh> meshes;
  for (std::int64_t ranks = 1; ranks <= 8; ++ranks) meshes.push_back({"one", {{"cp", ranks}}});
  for (const auto& [outer, inner] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {2, 2}, {2, 3}, {2, 4}, {4, 2}, {1, 3}, {3, 1}}) {
    meshes.push_back({"two", {{"node", outer}, {"gpu", inner}}});
  }
  meshes.push_back(
      {"three", {{"node", 2}, {"q0", 2}, {"m0", 2}}});  // axis names that digits must avoid
  return meshes;
}

std::string describe(const Problem& problem, const Mesh& mesh, std::string_view schedule) {
  std::string out = std::string(schedule) + " of " + problem.op;
  for (const auto& [name, size] : problem.sizes) out += " " + name + "=" + std::to_string(size);
  return out + (problem.causal ? " causal" : "") + " on " + print(mesh);
}

// One line per schedule without a proof; the caller reports all of them together.
std::string find_fault(const Program& program, const Mesh& mesh, const Script& script) {
  const Checked<NormalForm> form = replay(program, mesh, script);
  if (!form.ok()) return render(form.error());
  const Script derived = derive_script(program, mesh, *form);
  const Checked<NormalForm> again = replay(program, mesh, derived);
  if (!again.ok()) return "derived: " + render(again.error());
  if (*again != canonicalise(program, *form))
    return "derived script gives another form:\n" + print(*again);
  const Checked<Plan> plan = lower(program, mesh, *form);
  if (!plan.ok()) return render(plan.error()) + "\n" + print(*form);
  const Checked<Certificate> certificate = verify(*plan);
  if (!certificate.ok()) return render(certificate.error()) + "\n" + print(*form);
  return "";
}

TEST(NamedSchedules, refuse_with_a_reason_or_are_proved_right) {
  std::size_t proved = 0;
  for (const Problem& problem : all_problems()) {
    const Program program = instantiate_problem(problem);
    for (const Mesh& mesh : all_meshes()) {
      std::size_t applied = 0;
      for (const Applicability& entry : find_applicable(problem.op, program, mesh)) {
        SCOPED_TRACE(describe(problem, mesh, entry.name));
        if (!entry.script.ok()) {
          EXPECT_NE(render(entry.script.error()).find("try `"), std::string::npos)
              << render(entry.script.error());
          continue;
        }
        EXPECT_EQ(entry.script->name, entry.name);
        EXPECT_EQ(find_fault(program, mesh, *entry.script), "");
        ++applied;
      }
      EXPECT_GE(applied, 3U) << describe(problem, mesh, "");
      proved += applied;
    }
  }
  EXPECT_GT(proved, 1000U);
}

TEST(NamedSchedules, auto_applies_to_every_shape_and_mesh) {
  for (const Problem& problem : all_problems()) {
    const Program program = instantiate_problem(problem);
    for (const Mesh& mesh : all_meshes()) {
      SCOPED_TRACE(describe(problem, mesh, "auto"));
      const Checked<Script> script = choose_auto(problem.op, program, mesh);
      ASSERT_TRUE(script.ok()) << render(script.error());
      EXPECT_TRUE(replay(program, mesh, *script).ok());
    }
  }
}

}  // namespace
}  // namespace harpe
