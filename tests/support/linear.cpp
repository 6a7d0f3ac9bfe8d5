#include "tests/support/linear.h"

#include "compile/session.h"
#include "schedule/script.h"
#include "support/check.h"

namespace harpe::test {
namespace {

std::string write_program(const Linear& linear) {
  const auto axis = [](const std::string& name, std::int64_t size, int align) {
    return "  axis " + name + " = " + std::to_string(size) + " grain " + std::to_string(align) +
           "\n";
  };
  const std::string last = linear.has_gelu ? "added" : "y";
  std::string text = "program linear {\n" + axis("M", linear.m, 128) + axis("N", linear.n, 128) +
                     axis("K", linear.k, 64);
  text += "  buffer a : " + linear.dtype + "[M, K] in\n";
  text += "  buffer b : " + linear.dtype + "[K, N] in\n";
  text += "  buffer bias : " + linear.dtype + "[N] in\n";
  text += "  buffer c : " + linear.state + "[M, N] temp\n";
  if (linear.has_gelu) text += "  buffer added : " + linear.state + "[M, N] temp\n";
  text += "  buffer y : " + linear.dtype + "[M, N] out\n";
  text += "  nest mm over (M, N, K) {\n    c sum= matmul(a, b)\n  }\n";
  text += "  nest add over (M, N) {\n    " + last + " = add(c, bias)\n  }\n";
  if (linear.has_gelu) text += "  nest act over (M, N) {\n    y = gelu(added)\n  }\n";
  return text + "}\n";
}

// Adds pointwise tasks at the homes of the GEMM's result, and places what they compute.
std::string extend(Script script, const Linear& linear) {
  script.program = "linear";
  std::vector<Step> added;
  for (const Step& step : script.steps) {
    const auto* const first =
        step.arguments.empty() ? nullptr : std::get_if<Path>(&step.arguments.front().value.value);
    if (step.primitive != "shard" || first == nullptr || first->parts.front() != "c") continue;
    const auto repeat = [&](const std::string& primitive, const std::string& of) {
      Step& other = added.emplace_back(step);
      other.primitive = primitive;
      other.arguments.front().value.value = Path{{of}};
    };
    repeat("shard", "y");
    repeat("parallelize", "add");
    if (!linear.has_gelu) continue;
    repeat("shard", "added");
    repeat("parallelize", "act");
  }
  script.steps.insert(script.steps.end(), added.begin(), added.end());
  return print(script);
}

}  // namespace

Request ask(const Linear& linear, const std::string& mesh) {
  Session session(false);
  Request request;
  request.target = linear.op;
  request.parameters = {"m=" + std::to_string(linear.m), "n=" + std::to_string(linear.n),
                        "k=" + std::to_string(linear.k), "dtype=" + linear.dtype};
  request.mesh = mesh;
  request.schedule = linear.schedule;
  const Checked<Scheduled> product = session.schedule(request);
  HP_CHECK(product.ok(), render(product.error()));
  HP_CHECK(product->script, "named schedules are scripts");
  request.target = "linear.op";
  request.parameters = {};
  request.program_text = write_program(linear);
  request.schedule = "linear.sched";
  request.schedule_text = extend(*product->script, linear);
  return request;
}

std::string name_of(const Linear& linear, const std::string& mesh) {
  return linear.op + " " + linear.schedule + " on " + mesh + " m=" + std::to_string(linear.m) +
         " n=" + std::to_string(linear.n) + " k=" + std::to_string(linear.k) + " " + linear.dtype +
         " by " + linear.state + (linear.has_gelu ? ", gelu" : "");
}

}  // namespace harpe::test
