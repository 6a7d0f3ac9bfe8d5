#include "run/run.h"

#include <algorithm>
#include <memory>
#include <thread>

#include "io/files.h"
#include "io/npy.h"
#include "io/trace.h"
#include "ir/interpret.h"
#include "ir/mask_data.h"
#include "ir/routing.h"
#include "run/load.h"
#include "run/memory.h"

namespace harpe {
namespace {

std::string quote_all(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "`" : ", `") + name + "`";
  return out.empty() ? "none" : out;
}

std::vector<std::string> names_of(const Program& program, Role role) {
  std::vector<std::string> names;
  for (const Buffer* buffer : buffers_of(program)) {
    if (buffer->role == role) names.push_back(buffer->name);
  }
  return names;
}

std::vector<std::string> names_of(const std::vector<NamedFile>& files) {
  std::vector<std::string> names;
  for (const NamedFile& file : files) names.push_back(file.name);
  return names;
}

// Computes the inputs that follow from others, and that no file gives, by the reference.
Checked<Ok> derive_inputs(const Program& program, const std::vector<NamedFile>& files,
                          const TimeLimit& limit, TensorMap& inputs) {
  const Program preparation = preparation_of(program);
  const std::vector<std::string> follow = names_of(preparation, Role::Out);
  const auto is_given = [&](const std::string& name) {
    return std::ranges::find(files, name, &NamedFile::name) != files.end();
  };
  if (std::ranges::all_of(follow, is_given)) return Ok{};
  HP_TRY(const Meaning made,
         interpret(preparation, inputs, std::nullopt, thread_count(), {}, &limit));
  for (const std::string& name : follow) {
    if (is_given(name)) continue;
    inputs.insert_or_assign(name,
                            convert(made.outputs.at(name), find_buffer(program, name)->dtype));
  }
  return Ok{};
}

Checked<HostTensor> draw_input(const Program& program, const Buffer& buffer,
                               const RunRequest& request) {
  if (const Route* const route = find_route_by(program, buffer)) {
    return draw_choices(program, *route, buffer, request.seed, request.load);
  }
  return draw_input(program, buffer, request.seed);
}

// Checks that a route's index names existing experts, none more often than it has slots.
Checked<Ok> check_choices(const Program& program, const Buffer& buffer, const HostTensor& tensor) {
  const Route* const route = find_route_by(program, buffer);
  if (route == nullptr || route->by != buffer.name) return Ok{};
  HP_REQUIRE_OK(resolve_route(program, *route, tensor));
  return Ok{};
}

// Checks that a load profile has an input that is drawn from it.
Checked<Ok> check_load(const Program& program, const RunRequest& request) {
  if (!request.load) return Ok{};
  for (const Buffer* const buffer : buffers_of(program)) {
    const bool given =
        std::ranges::find(request.inputs, buffer->name, &NamedFile::name) != request.inputs.end();
    if (buffer->role != Role::In || find_route_by(program, *buffer) == nullptr) continue;
    if (!given) return Ok{};
    return make_diag(DiagCode::I307, {{"program", program.name},
                                      {"reason", "`" + buffer->name + "` comes from a file"}});
  }
  return make_diag(DiagCode::I307, {{"program", program.name}, {"reason", "it has no routing"}});
}

}  // namespace

Checked<Ok> check_names(const Program& program, const std::vector<std::string>& names, Role role) {
  const std::vector<std::string> known = names_of(program, role);
  for (const std::string& name : names) {
    if (std::ranges::find(known, name) != known.end()) continue;
    return make_diag(role == Role::In ? DiagCode::I301 : DiagCode::I305,
                     {{"name", name},
                      {"program", program.name},
                      {"hint", suggestion(name, known)},
                      {"known", quote_all(known)}});
  }
  return Ok{};
}

Checked<Ok> check_numbers(const Program& program, const Buffer& buffer, const TensorMap& inputs) {
  HP_REQUIRE_OK(check_mask_data(program, buffer, inputs));
  return check_choices(program, buffer, inputs.at(buffer.name));
}

Checked<TensorMap> prepare_run(const Plan& plan, const RunRequest& request,
                               const TimeLimit& limit) {
  const Program& program = plan.program;
  HP_REQUIRE_OK(check_names(program, names_of(request.inputs), Role::In));
  HP_REQUIRE_OK(check_names(program, names_of(request.outputs), Role::Out));
  HP_REQUIRE_OK(check_load(program, request));
  HP_REQUIRE_OK(
      check_memory("this run", bytes_to_run(plan, request.check || !program.given.empty())));
  TensorMap inputs;
  for (const Buffer* buffer : buffers_of(program)) {
    if (buffer->role != Role::In) continue;
    HP_REQUIRE_OK(limit.check("drawing `" + buffer->name + "`"));
    const auto file = std::ranges::find(request.inputs, buffer->name, &NamedFile::name);
    if (file == request.inputs.end()) {
      HP_TRY(HostTensor drawn, draw_input(program, *buffer, request));
      inputs.emplace(buffer->name, std::move(drawn));
      continue;
    }
    HP_TRY(const HostTensor tensor, read_npy(file->path));
    HP_TRY(HostTensor fitted, fit_input(program, *buffer, tensor, file->path));
    inputs.emplace(buffer->name, std::move(fitted));
  }
  for (const NamedFile& file : request.inputs) {
    Checked<Ok> checked = check_numbers(program, *find_buffer(program, file.name), inputs);
    if (!checked.ok()) {
      return with_note(std::move(checked).error(), "in `" + file.path + "`");
    }
  }
  HP_REQUIRE_OK(derive_inputs(program, request.inputs, limit, inputs));
  return inputs;
}

int thread_count() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

Checked<TensorMap> gather_outputs(const Executor& executor, const Program& program) {
  TensorMap outputs;
  for (const std::string& name : names_of(program, Role::Out)) {
    HP_TRY(HostTensor output, executor.output(name));
    outputs.emplace(name, std::move(output));
  }
  return outputs;
}

Checked<RunOutcome> run(const Plan& plan, const RunRequest& request, const TensorMap& inputs) {
  BackendRequest backend = request.backend;
  backend.trace = request.trace || request.report;
  HP_TRY(const std::unique_ptr<Executor> executor, make_executor(plan, backend));
  for (const auto& [name, tensor] : inputs) HP_REQUIRE_OK(executor->set_input(name, tensor));
  RunOutcome outcome;
  bool is_given_up = false;
  RunOptions options{
      .iterations = request.iterations, .wait_limit = request.wait_limit, .trace = backend.trace};
  if (request.progress) {
    options.progress = [&](std::int64_t done, std::int64_t of) {
      is_given_up = !request.progress(done, of);
      return !is_given_up;
    };
  }
  Result<RunStats, FaultReport> stats = executor->run(options);
  if (!stats.ok()) {
    if (is_given_up) return make_diag(DiagCode::I505, {{"work", "the run"}});
    outcome.fault = std::move(stats).error();
    return outcome;
  }
  outcome.stats = std::move(stats).value();
  if (!is_first(request.backend)) return outcome;
  if (request.trace)
    HP_REQUIRE_OK(write_trace(*request.trace, plan, outcome.stats.trace, outcome.stats.kernels));
  if (!request.check && !request.gathers && request.outputs.empty()) return outcome;
  HP_TRY(TensorMap outputs, gather_outputs(*executor, plan.program));
  if (request.check) {
    HP_TRY(outcome.check, check_outputs(plan, inputs, outputs, request.seed, thread_count()));
  }
  for (const NamedFile& file : request.outputs) {
    HP_REQUIRE_OK(write_npy(file.path, outputs.at(file.name)));
  }
  if (request.gathers) outcome.outputs = std::move(outputs);
  return outcome;
}

}  // namespace harpe
