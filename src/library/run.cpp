#include "harpe/run.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "io/npy.h"
#include "library/boundary.h"
#include "library/plan_state.h"
#include "library/views.h"
#include "run/host.h"
#include "run/memory.h"
#include "run/run.h"

namespace harpe::library {
namespace {

using Inputs = std::map<std::string, v1::ConstView>;
using Outputs = std::map<std::string, v1::View>;

// The outcome of a run: its result or a fault.
struct Ran {
  v1::RunResult result;
  std::optional<FaultReport> fault;
};

template <class Views>
std::vector<std::string> list_names(const Views& views) {
  std::vector<std::string> names;
  names.reserve(views.size());
  for (const auto& [name, view] : views) names.push_back(name);
  return names;
}

std::string argument_of(const char* map, const std::string& name) {
  return std::string(map) + "[" + name + "]";
}

harpe::Checked<Ok> check_options(const v1::RunOptions& options) {
  if (options.iterations < 1) {
    return make_diag(DiagCode::I311, {{"argument", "iterations"},
                                      {"wanted", "at least 1"},
                                      {"found", std::to_string(options.iterations)}});
  }
  return check_time("wait_limit", options.wait_limit);
}

// All inputs in their buffers' types, with checked indices.
harpe::Checked<TensorMap> read_inputs(const Program& program, const Inputs& views) {
  HP_REQUIRE_OK(check_names(program, list_names(views), Role::In));
  TensorMap tensors;
  for (const Buffer* const buffer : buffers_of(program)) {
    if (buffer->role != Role::In) continue;
    const auto view = views.find(buffer->name);
    if (view == views.end()) {
      const std::string wanted = std::string(print(buffer->dtype)) + " of shape " +
                                 print_shape(shape_of(program, *buffer));
      return make_diag(DiagCode::I310,
                       {{"program", program.name}, {"name", buffer->name}, {"wanted", wanted}});
    }
    const std::string argument = argument_of("inputs", buffer->name);
    HP_TRY(HostTensor tensor, read_view(program, *buffer, view->second, argument));
    tensors.emplace(buffer->name, std::move(tensor));
  }
  for (const auto& [name, view] : views) {
    harpe::Checked<Ok> checked = check_numbers(program, *find_buffer(program, name), tensors);
    if (!checked.ok()) {
      return with_note(std::move(checked).error(), "in `" + argument_of("inputs", name) + "`");
    }
  }
  return tensors;
}

harpe::Checked<Ok> check_outputs(const Program& program, const Outputs& views) {
  HP_REQUIRE_OK(check_names(program, list_names(views), Role::Out));
  for (const auto& [name, view] : views) {
    const std::string argument = argument_of("outputs", name);
    HP_REQUIRE_OK(check_output(program, *find_buffer(program, name), view, argument));
  }
  return Ok{};
}

v1::RunResult to_result(const RunStats& stats) {
  v1::RunResult result;
  for (const std::chrono::nanoseconds time : stats.iterations) {
    result.times_us.push_back(std::chrono::duration<double, std::micro>(time).count());
  }
  result.bytes_moved = stats.bytes_moved;
  return result;
}

// Writes outputs to their views, and keeps the others.
void give_outputs(TensorMap tensors, const Outputs& views, v1::RunResult& result) {
  for (auto& [name, tensor] : tensors) {
    if (const auto view = views.find(name); view != views.end()) {
      write_view(tensor, view->second);
      result.copied_bytes += std::ssize(tensor.data);
    } else {
      result.outputs.emplace(name, to_tensor(std::move(tensor)));
    }
  }
}

// The library that multiplies each input type.
std::vector<std::pair<std::string, std::string>> list_products(const Program& program,
                                                               bool uses_libraries) {
  std::vector<std::pair<std::string, std::string>> products;
  for (const Buffer* const buffer : buffers_of(program)) {
    if (buffer->role != Role::In || !is_computed_in(buffer->dtype)) continue;
    std::pair<std::string, std::string> each(print(buffer->dtype),
                                             name_products(buffer->dtype, uses_libraries));
    if (std::ranges::find(products, each) == products.end()) products.push_back(std::move(each));
  }
  return products;
}

harpe::Checked<Ran> run_plan(Call& call, const Plan& plan, const Inputs& inputs,
                             const Outputs& outputs, const v1::RunOptions& options) {
  HP_REQUIRE_OK(check_options(options));
  HP_REQUIRE_OK(check_outputs(plan.program, outputs));
  HP_REQUIRE_OK(check_memory("this run", bytes_to_run(plan, options.check)));
  HP_TRY(const TensorMap tensors, read_inputs(plan.program, inputs));
  RunRequest request;
  request.iterations = options.iterations;
  request.wait_limit = options.wait_limit;
  request.backend.wait_limit = options.wait_limit;
  request.backend.uses_libraries = options.cpu_kernels == v1::CpuKernels::Libraries;
  request.gathers = true;
  if (options.progress) {
    request.progress = [&call](std::int64_t done, std::int64_t of) {
      call.report("running", done, of);
      return !call.is_given_up();
    };
  }
  HP_TRY(RunOutcome outcome, harpe::run(plan, request, tensors));
  Ran ran{.result = to_result(outcome.stats), .fault = std::move(outcome.fault)};
  for (const auto& [name, tensor] : tensors) ran.result.copied_bytes += std::ssize(tensor.data);
  ran.result.products = list_products(plan.program, request.backend.uses_libraries);
  if (ran.fault) return ran;
  std::optional<CheckReport> check;
  if (options.check) {
    HP_TRY(check, harpe::check_outputs(plan, tensors, outcome.outputs, request.seed, thread_count(),
                                       call.limit("checking")));
  }
  give_outputs(std::move(outcome.outputs), outputs, ran.result);
  if (!check) return ran;
  if (!check->passed()) return failure_of(*check);
  for (const Comparison& each : check->outputs) {
    ran.result.checks.push_back({.buffer = each.buffer,
                                 .error = each.error,
                                 .bound = each.bound,
                                 .rows = each.rows,
                                 .rows_checked = each.checked});
  }
  return ran;
}

}  // namespace
}  // namespace harpe::library

namespace harpe::v1 {

Checked<std::map<std::string, Tensor>> draw_inputs(const Plan& plan, std::uint64_t seed,
                                                   const Progress& progress) {
  using All = std::map<std::string, Tensor>;
  const Options watched{.progress = progress};
  return library::enter<All>(watched, [&](library::Call& call) -> harpe::Checked<All> {
    RunRequest request;
    request.seed = seed;
    HP_TRY(TensorMap drawn, prepare_run(plan.state().plan, request, call.limit("drawing inputs")));
    All all;
    for (auto& [name, tensor] : drawn) all.emplace(name, library::to_tensor(std::move(tensor)));
    return all;
  });
}

Checked<RunResult> run(const Plan& plan, const std::map<std::string, ConstView>& inputs,
                       const std::map<std::string, View>& outputs, const RunOptions& options) {
  const Options watched{.progress = options.progress};
  Checked<library::Ran> ran = library::enter<library::Ran>(watched, [&](library::Call& call) {
    return library::run_plan(call, plan.state().plan, inputs, outputs, options);
  });
  if (!ran.ok()) return ran.error();
  if (!ran->fault) return std::move(ran->result);
  const PlanFacts& facts = plan.facts();
  return library::to_error(*ran->fault,
                           facts.op + " on " + facts.mesh + ", schedule " + facts.schedule);
}

}  // namespace harpe::v1
