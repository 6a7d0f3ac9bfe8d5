#include "measure/library_run.h"

#include <algorithm>
#include <memory>

#include "compile/launches.h"
#include "compile/library_operators.h"
#include "compile/machines.h"
#include "compile/read_constraints.h"
#include "compile/schedule_names.h"
#include "compile/target.h"
#include "io/npy.h"
#include "measure/executor_pool.h"
#include "measure/halving.h"
#include "measure/turns.h"
#include "schedule/named/registry.h"
#include "search/cache.h"
#include "sim/simulate.h"

namespace harpe {
namespace {

constexpr std::int64_t kIterationsOfTurn = 10;
constexpr std::int64_t kMostAtOnce = 1000;  // executions: each has its own event

// The plan of the schedule that moves and computes as libraries do. It gives the size of a run, and
// the effect of rounding on its results.
Checked<Plan> plan_beside(Session& session, Request subject, const Program& program,
                          const Mesh& mesh) {
  const std::vector<Applicability> all = find_applicable(schedule_family(program), program, mesh);
  const auto find = [&](std::string_view name) {
    return std::ranges::find_if(all, [&](const Applicability& one) {
      return one.script.ok() && (name.empty() || one.name == name);
    });
  };
  for (const char* const name : {"bulk", "allgather", ""}) {
    const auto found = find(name);
    if (found == all.end()) continue;
    subject.schedule = found->name;
    return session.plan(subject);
  }
  subject.schedule = std::nullopt;
  return session.plan(subject);
}

class LibraryRun {
 public:
  LibraryRun(const RunRequest& request, const Plan& plan, const TensorMap& inputs,
             std::vector<LibraryWay> ways)
      : request_(request),
        plan_(plan),
        inputs_(inputs),
        ways_(std::move(ways)),
        expected_us_(ways_.size(), 0),
        executors_([this](std::size_t index) { return make(index); }) {
    for (const LibraryWay& way : ways_) {
      out_.candidates.push_back({.name = way.name, .median_us = {}, .reason = {}});
    }
  }

  Checked<LibraryOutcome> run() {
    const std::optional<std::size_t> chosen = choose();
    Executor* const executor = chosen ? wake(*chosen) : nullptr;
    if (executor == nullptr) {
      if (!fault_) return *refusal_;
      out_.outcome.fault = fault_;
      return std::move(out_);
    }
    out_.name = ways_[*chosen].name;
    HP_REQUIRE_OK(execute(*executor));
    return std::move(out_);
  }

 private:
  [[nodiscard]] Checked<std::unique_ptr<Executor>> make(std::size_t index) const {
    HP_TRY(LibraryExecutor made, ways_[index].make());
    for (const auto& [name, tensor] : inputs_) {
      HP_REQUIRE_OK(made.executor->set_input(name, tensor));
    }
    return std::move(made.executor);
  }

  // The fastest way, by alternating turns; none if no way runs.
  [[nodiscard]] std::optional<std::size_t> choose() {
    if (ways_.size() == 1) return 0;
    const HalvingResult result =
        halve(ways_.size(), [this](std::size_t index) { return turn(index); }, {});
    for (std::size_t i = 0; i < ways_.size(); ++i) {
      const Standing& standing = result.standings[i];
      if (!standing.failed && !standing.times.empty()) {
        out_.candidates[i].median_us = standing.median();
      }
    }
    if (result.left.empty()) return std::nullopt;
    return result.left.front();
  }

  [[nodiscard]] std::vector<double> turn(std::size_t index) {
    Executor* const executor = wake(index);
    if (executor == nullptr) return {};
    const auto times =
        take_turn({&executor, 1}, expected_us_[index], kIterationsOfTurn, request_.wait_limit);
    if (times.ok()) return *times;
    fail(index, times.error());
    return {};
  }

  // The way's executor, warmed up; none if it does not run.
  [[nodiscard]] Executor* wake(std::size_t index) {
    const Checked<ExecutorPool::Got> got = executors_.at(index);
    if (!got.ok()) {
      out_.candidates[index].reason = render_message(got.error());
      if (!refusal_) refusal_ = got.error();
      return nullptr;
    }
    if (!got->is_new) return got->executor;
    const Result<double, FaultReport> time = warm_up(*got->executor, request_.wait_limit);
    if (!time.ok()) {
      fail(index, time.error());
      return nullptr;
    }
    expected_us_[index] = *time;
    return got->executor;
  }

  void fail(std::size_t index, const FaultReport& fault) {
    out_.candidates[index].reason = render(fault);
    if (!fault_) fault_ = fault;
    executors_.drop(index);
  }

  [[nodiscard]] Checked<Ok> execute(Executor& executor) {
    RunOutcome& outcome = out_.outcome;
    for (std::int64_t left = request_.iterations; left > 0; left -= kMostAtOnce) {
      Result<RunStats, FaultReport> stats = executor.run(
          {.iterations = std::min(left, kMostAtOnce), .wait_limit = request_.wait_limit});
      if (!stats.ok()) {
        outcome = {};
        outcome.fault = std::move(stats).error();
        return Ok{};
      }
      auto& all = outcome.stats.iterations;
      all.insert(all.end(), stats->iterations.begin(), stats->iterations.end());
    }
    if (!request_.check && request_.outputs.empty()) return Ok{};
    HP_TRY(const TensorMap outputs, gather_library_outputs(executor, plan_.program));
    if (request_.check) {
      HP_TRY(const Reference reference,
             make_reference({&plan_}, inputs_, request_.seed, thread_count()));
      outcome.check = compare_library_outputs(plan_, outputs, reference);
    }
    for (const NamedFile& file : request_.outputs) {
      HP_REQUIRE_OK(write_npy(file.path, outputs.at(file.name)));
    }
    return Ok{};
  }

  const RunRequest& request_;
  const Plan& plan_;
  const TensorMap& inputs_;
  std::vector<LibraryWay> ways_;
  std::vector<double> expected_us_;
  ExecutorPool executors_;
  std::optional<Diag> refusal_;       // the first one
  std::optional<FaultReport> fault_;  // the first one
  LibraryOutcome out_;
};

}  // namespace

Checked<Ok> check_library_run(const Request& subject, const RunRequest& request,
                              const Program& program) {
  if (request.backend.backend != Backend::Cuda) {
    return no_library("NCCL and libraries have no CPU ranks");
  }
  if (request.backend.launch) {
    return no_library("libraries run the ranks of one process, and this is one of several");
  }
  if (request.backend.share_gpus || request.backend.divide_gpus) {
    return no_library("NCCL wants a GPU for each rank, and here ranks share them");
  }
  if (request.trace || request.report) {
    return no_library("libraries have no tasks that a trace or a page could show");
  }
  const std::vector<std::string> made = library_outputs(program);
  for (const NamedFile& file : request.outputs) {
    const Buffer* const buffer = find_buffer(program, file.name);
    const bool is_output = buffer != nullptr && buffer->role == Role::Out;
    if (is_output && std::ranges::find(made, file.name) == made.end()) {
      return no_library("libraries are not asked for `" + file.name + "`");
    }
  }
  return check_library_ways(subject, program);
}

Checked<LibraryOutcome> run_library(Session& session, const Request& subject,
                                    const RunRequest& request, const FindWays& find_ways) {
  HP_TRY(const Program program, session.program(subject));
  HP_REQUIRE_OK(check_library_run(subject, request, program));
  HP_TRY(const Mesh mesh, session.mesh(subject));
  HP_TRY(const Plan plan, plan_beside(session, subject, program, mesh));
  HP_TRY(const TensorMap inputs, prepare_run(plan, request));
  HP_TRY(std::vector<LibraryWay> ways, find_ways(program, mesh.ranks(), inputs));
  HP_CHECK(!ways.empty(), "an operator of the benchmarks has a baseline");
  return LibraryRun(request, plan, inputs, std::move(ways)).run();
}

namespace {

// True for an operator whose schedule is `auto`.
bool is_chosen(const Request& subject) {
  const bool is_auto = !subject.schedule || *subject.schedule == "auto";
  return is_auto && kind_of(subject.target) != TargetKind::PlanFile;
}

// The fastest cached schedule that was measured beside libraries on these processors.
std::optional<CachedSchedule> recall_measured_schedule(Session& session, const Request& subject) {
  if (!is_chosen(subject) || !subject.cache || !subject.site) return std::nullopt;
  const Checked<Program> program = session.program(subject);
  const Checked<Mesh> mesh = session.mesh(subject);
  if (!program.ok() || !mesh.ok()) return std::nullopt;  // making the plan reports why
  const Checked<Machine> machine = machine_for(subject.machine, *mesh);
  if (!machine.ok()) return std::nullopt;
  SearchOptions options;
  options.family = schedule_family(*program);
  const Checked<Constraints> constraints = read_constraints(*program, *mesh, subject);
  if (!constraints.ok()) return std::nullopt;
  options.constraints = *constraints;
  const CacheKey key = make_cache_key(*program, *mesh, *machine, options, subject.version);
  // The user of a cached schedule checks that it lowers, and reports if not.
  const auto any = [](const NormalForm&) -> Checked<Ok> { return Ok{}; };
  const CacheAnswer answer = consult_cache(*subject.cache, key, any, [](const Diag&) {});
  if (!answer.exact) return std::nullopt;
  const CachedSchedule& best = answer_of(*answer.exact, subject.site);
  const std::optional<CachedTime>& measured = best.measured;
  const bool is_known = measured && measured->backend == print(subject.site->backend) &&
                        measured->processor == subject.site->processor && measured->baseline;
  if (!is_known) return std::nullopt;
  return best;
}

}  // namespace

std::optional<CachedSchedule> recall_slower_schedule(Session& session, const Request& subject) {
  std::optional<CachedSchedule> known = recall_measured_schedule(session, subject);
  if (known && known->measured->baseline->time >= known->measured->time) return std::nullopt;
  return known;
}

std::optional<LibraryPrice> price_beside(Session& session, const Request& subject,
                                         const Plan& plan) {
  const bool is_on_gpus = subject.site && subject.site->backend == Backend::Cuda;
  if (!is_on_gpus || !is_chosen(subject) || recall_measured_schedule(session, subject)) {
    return std::nullopt;
  }
  const Checked<Machine> machine = machine_for(subject.machine, plan.mesh);
  if (!machine.ok() || !check_fits(plan, *machine).ok()) return std::nullopt;
  const Checked<Simulation> simulated = simulate(plan, launches_on(plan, *machine), *machine);
  if (!simulated.ok()) return std::nullopt;
  return price_libraries(plan.program, subject.parameters, plan.mesh, *machine, simulated->total);
}

}  // namespace harpe
