#include "measure/measure.h"

#include <algorithm>
#include <memory>

#include "compile/certify.h"
#include "compile/library_leaves.h"
#include "measure/executor_pool.h"
#include "measure/halving.h"
#include "measure/turns.h"
#include "run/check.h"
#include "run/memory.h"
#include "run/run.h"

namespace harpe {
namespace {

using Clock = std::chrono::steady_clock;

struct MeasuredContender {
  std::size_t index = 0;
  MeasuredSchedule result;        // a baseline has no schedule, only its label
  std::optional<Plan> plan;       // none: refused, or a baseline
  std::optional<LibraryWay> way;  // for a baseline
  double expected_us = 0;

  [[nodiscard]] bool is_in() const { return result.outcome == MeasuredAs::NotReached; }
};

class Measurement {
 public:
  Measurement(Session& session, const MeasureRequest& request)
      : session_(session),
        request_(request),
        executors_([this](std::size_t index) { return make_executor_of(index); }) {
    out_.backend = request.backend.backend;
    if (out_.backend == Backend::Cuda) out_.collectives = request.backend.collectives;
    out_.processor = find_site(out_.backend).processor;
  }

  Checked<Measured> run(const Program& program, const Mesh& mesh, const SearchResult& found) {
    const Clock::time_point begun = Clock::now();
    add(found.top);
    add(found.baselines);
    add(found.spread);
    make_plans(program, mesh);
    add_library_leaves(program, mesh, found.top.size() + found.baselines.size());
    for (const MeasuredContender& one : all_) {
      if (one.plan) plans_.push_back(&*one.plan);
    }
    if (plans_.empty()) return *refusal_;
    HP_TRY(inputs_, prepare_run(*plans_.front(), run_request()));
    add_baselines(program, mesh);
    HP_REQUIRE_OK(prepare_all());
    take_turns();
    const bool nothing_ran = std::ranges::all_of(all_, [](const MeasuredContender& one) {
      return one.result.outcome == MeasuredAs::Refused;
    });
    if (nothing_ran) return *refusal_;
    conclude();
    out_.seconds = std::chrono::duration<double>(Clock::now() - begun).count();
    return std::move(out_);
  }

 private:
  void add(const std::vector<Evaluated>& schedules) {
    for (const Evaluated& one : schedules) {
      const bool is_known = std::ranges::any_of(all_, [&](const MeasuredContender& other) {
        return other.result.schedule.form == one.form;
      });
      if (is_known || !one.excluded.empty()) continue;
      MeasuredContender& added = all_.emplace_back();
      added.index = all_.size() - 1;
      added.result.schedule = one;
    }
  }

  void add_baselines(const Program& program, const Mesh& mesh) {
    if (!request_.libraries) return;
    show("opening libraries", 0, 1);
    Checked<std::vector<LibraryWay>> ways = request_.libraries(program, mesh.ranks(), inputs_);
    if (!ways.ok()) {
      out_.no_baseline = render_message(ways.error());
      return;
    }
    for (LibraryWay& way : *ways) {
      MeasuredContender& added = baselines_.emplace_back();
      added.index = all_.size() + baselines_.size() - 1;
      added.result.schedule.label = way.name;
      added.way = std::move(way);
    }
  }

  void make_plans(const Program& program, const Mesh& mesh) {
    std::int64_t done = 0;
    for (MeasuredContender& one : all_) {
      show("proving", done++, std::ssize(all_));
      lower_and_prove(one, program, mesh);
    }
  }

  void lower_and_prove(MeasuredContender& one, const Program& program, const Mesh& mesh) {
    Checked<Plan> plan = make_plan(
        {.program = program, .mesh = mesh, .script = {}, .form = one.result.schedule.form});
    if (plan.ok()) {
      one.plan = std::move(plan).value();
    } else {
      refuse(one, plan.error());
    }
  }

  // Adds variants of the first `most` schedules with libraries' kernels, where these support the
  // leaves.
  void add_library_leaves(const Program& program, const Mesh& mesh, std::size_t most) {
    if (!request_.libraries || request_.backend.backend != Backend::Cuda) return;
    std::vector<Evaluated> variants;
    for (std::size_t i = 0; i < std::min(most, all_.size()); ++i) {
      if (!all_[i].plan) continue;
      const std::optional<LibraryLeaves> leaves = use_library_leaves(*all_[i].plan);
      if (!leaves) continue;
      Evaluated& variant = variants.emplace_back(all_[i].result.schedule);
      variant.form = leaves->form;
      for (const std::string& kernel : leaves->kernels) variant.label += "+" + kernel;
    }
    const std::size_t first = all_.size();
    add(variants);
    for (std::size_t i = first; i < all_.size(); ++i) {
      all_[i].result.is_predicted = false;
      lower_and_prove(all_[i], program, mesh);
    }
  }

  [[nodiscard]] Checked<Plan> make_plan(const Scheduled& scheduled) {
    HP_TRY(Plan plan, session_.lower(scheduled));
    HP_REQUIRE_OK(certify(plan, level_for(plan)));
    return plan;
  }

  [[nodiscard]] RunRequest run_request() const {
    RunRequest request;
    request.seed = request_.seed;
    request.check = true;
    return request;
  }

  // Executes and checks each one once, before any is timed, for at most three quarters of the
  // remaining time. Libraries come first, then the best predicted schedules.
  Checked<Ok> prepare_all() {
    std::optional<Clock::time_point> until;
    const Clock::time_point now = Clock::now();
    if (request_.deadline) until = now + (*request_.deadline - now) * 3 / 4;
    std::int64_t done = 0;
    std::vector<MeasuredContender*> companions;
    for (MeasuredContender& one : baselines_) {
      show("preparing", done++, std::ssize(baselines_) + std::ssize(all_));
      HP_REQUIRE_OK(prepare(one, until, companions));
    }
    for (MeasuredContender& one : all_) {
      show("preparing", done++, std::ssize(baselines_) + std::ssize(all_));
      HP_REQUIRE_OK(prepare(one, until, ready_));
    }
    companions_ = companions.size();
    ready_.insert(ready_.end(), companions.begin(), companions.end());
    return Ok{};
  }

  Checked<Ok> prepare(MeasuredContender& one, const std::optional<Clock::time_point>& until,
                      std::vector<MeasuredContender*>& ready) {
    if (!one.is_in()) return Ok{};
    if (is_after(until)) {
      out_.complete = false;
      return Ok{};
    }
    if (Executor* const executor = wake(one)) HP_REQUIRE_OK(check(one, *executor));
    if (one.is_in()) ready.push_back(&one);
    return Ok{};
  }

  // The reference is computed for the first one that runs.
  Checked<Ok> check(MeasuredContender& one, const Executor& executor) {
    if (!reference_) {
      show("computing the reference", 0, 1);
      HP_TRY(reference_, make_reference(plans_, inputs_, request_.seed, thread_count()));
    }
    const Program& program = plans_.front()->program;
    const Checked<TensorMap> outputs =
        one.way ? gather_library_outputs(executor, program) : gather_outputs(executor, program);
    if (!outputs.ok()) {
      refuse(one, outputs.error());
      return Ok{};
    }
    const CheckReport report = one.way
                                   ? compare_library_outputs(*plans_.front(), *outputs, *reference_)
                                   : compare_outputs(*one.plan, *outputs, *reference_);
    if (!report.passed()) leave(one, MeasuredAs::Wrong, render_message(failure_of(report)));
    return Ok{};
  }

  void take_turns() {
    std::string stage;
    std::int64_t turns = 0;
    std::int64_t of = 0;
    HalvingOptions options;
    options.companions = companions_;
    options.is_over = [&] { return is_after(request_.deadline); };
    options.begin_round = [&](std::int64_t round, std::size_t left) {
      stage = "round " + std::to_string(round + 1) + ", turn";
      turns = 0;
      of = static_cast<std::int64_t>(left) * options.passes;
    };
    const HalvingResult result = halve(
        ready_.size(),
        [&](std::size_t index) {
          show(stage, turns++, of);
          return turn(*ready_[index]);
        },
        options);
    out_.rounds = result.rounds;
    out_.complete = out_.complete && result.complete;
    for (std::size_t i = 0; i < ready_.size(); ++i) {
      const Standing& standing = result.standings[i];
      if (!ready_[i]->is_in() || standing.times.empty()) continue;
      MeasuredSchedule& timed = ready_[i]->result;
      timed.outcome = MeasuredAs::Timed;
      timed.median_us = standing.median();
      timed.noise = standing.noise();
      timed.rounds = standing.rounds;
      timed.executions = std::ssize(standing.times);
    }
    // Only of the schedules.
    for (const std::size_t index : result.left) out_.all.push_back(ready_[index]->result);
  }

  [[nodiscard]] std::vector<double> turn(MeasuredContender& one) {
    Executor* const executor = wake(one);
    if (executor == nullptr) return {};
    const auto times = take_turn({&executor, 1}, one.expected_us, request_.iterations,
                                 request_.backend.wait_limit);
    if (times.ok()) return *times;
    leave(one, MeasuredAs::Faulted, render(times.error()));
    return {};
  }

  // Its executor, warmed up; none if it cannot run.
  Executor* wake(MeasuredContender& one) {
    const Checked<ExecutorPool::Got> got = executors_.at(one.index);
    if (!got.ok()) {
      refuse(one, got.error());
      return nullptr;
    }
    if (!got->is_new) return got->executor;
    const Result<double, FaultReport> time = warm_up(*got->executor, request_.backend.wait_limit);
    if (!time.ok()) {
      leave(one, MeasuredAs::Faulted, render(time.error()));
      return nullptr;
    }
    one.expected_us = *time;
    return got->executor;
  }

  [[nodiscard]] Checked<std::unique_ptr<Executor>> make_executor_of(std::size_t index) const {
    const MeasuredContender& one =
        index < all_.size() ? all_[index] : baselines_[index - all_.size()];
    HP_TRY(std::unique_ptr<Executor> executor, one.way ? make_for(*one.way) : make_for(*one.plan));
    for (const auto& [name, tensor] : inputs_) HP_REQUIRE_OK(executor->set_input(name, tensor));
    return executor;
  }

  [[nodiscard]] static Checked<std::unique_ptr<Executor>> make_for(const LibraryWay& way) {
    HP_TRY(LibraryExecutor made, way.make());
    return std::move(made.executor);
  }

  [[nodiscard]] Checked<std::unique_ptr<Executor>> make_for(const Plan& plan) const {
    if (request_.backend.backend == Backend::Cpu) {
      HP_REQUIRE_OK(check_memory("this plan", arena_bytes(plan) * plan.mesh.ranks()));
    }
    return make_executor(plan, request_.backend);
  }

  void refuse(MeasuredContender& one, const Diag& diag) {
    if (!refusal_ && !one.way) refusal_ = diag;
    one.result.code = info(diag.code).name;
    leave(one, MeasuredAs::Refused, render_message(diag));
  }

  void leave(MeasuredContender& one, MeasuredAs outcome, const std::string& reason) {
    one.result.outcome = outcome;
    one.result.reason = reason;
    executors_.drop(one.index);
  }

  // Appends the dropped ones behind those that were left, the latest dropped first.
  void conclude() {
    const auto is_among_left = [&](const MeasuredSchedule& one) {
      return std::ranges::any_of(out_.all, [&](const MeasuredSchedule& other) {
        return other.schedule.form == one.schedule.form;
      });
    };
    std::vector<MeasuredSchedule> others;
    for (const MeasuredContender& one : all_) {
      if (!is_among_left(one.result)) others.push_back(one.result);
    }
    std::ranges::stable_sort(others, [](const MeasuredSchedule& a, const MeasuredSchedule& b) {
      const bool a_timed = a.outcome == MeasuredAs::Timed;
      const bool b_timed = b.outcome == MeasuredAs::Timed;
      if (a_timed != b_timed) return a_timed;
      if (a.rounds != b.rounds) return a.rounds > b.rounds;
      return a.median_us < b.median_us;
    });
    out_.all.insert(out_.all.end(), others.begin(), others.end());
    for (const MeasuredContender& one : baselines_) {
      MeasuredBaseline& added = out_.baselines.emplace_back();
      static_cast<MeasuredTurns&>(added) = one.result;
      added.name = one.way->name;
    }
    std::ranges::stable_sort(out_.baselines, [](const auto& a, const auto& b) {
      const bool a_timed = a.outcome == MeasuredAs::Timed;
      const bool b_timed = b.outcome == MeasuredAs::Timed;
      return a_timed && (!b_timed || a.median_us < b.median_us);
    });
    compare();
  }

  void compare() {
    std::vector<MeasuredSchedule*> timed;
    std::vector<TimePair> pairs;
    for (MeasuredSchedule& one : out_.all) {
      if (one.outcome != MeasuredAs::Timed || !one.is_predicted) continue;
      timed.push_back(&one);
      pairs.push_back({.predicted_us = one.schedule.time().microseconds(),
                       .measured_us = one.median_us,
                       .question = {}});
    }
    if (pairs.empty()) return;
    out_.agreement = agreement_of("measured", true, pairs);
    std::ranges::stable_sort(timed, {},
                             [](const MeasuredSchedule* one) { return one->schedule.time(); });
    std::int64_t place = 0;
    for (MeasuredSchedule* const one : timed) one->predicted_place = ++place;
  }

  [[nodiscard]] bool is_after(const std::optional<Clock::time_point>& moment) const {
    return (moment && Clock::now() > *moment) || (request_.interrupted && request_.interrupted());
  }

  void show(std::string_view stage, std::int64_t done, std::int64_t of) const {
    if (request_.progress) request_.progress(stage, done, of);
  }

  Session& session_;
  const MeasureRequest& request_;
  Measured out_;
  std::vector<MeasuredContender> all_;
  std::vector<MeasuredContender> baselines_;
  std::vector<const Plan*> plans_;         // of all schedules
  std::vector<MeasuredContender*> ready_;  // of the schedules, then of the baselines
  std::size_t companions_ = 0;             // the number of baselines among them
  std::optional<Diag> refusal_;            // the first one
  TensorMap inputs_;
  std::optional<Reference> reference_;
  ExecutorPool executors_;
};

}  // namespace

const MeasuredSchedule* Measured::winner() const {
  return !all.empty() && all.front().outcome == MeasuredAs::Timed ? &all.front() : nullptr;
}

const MeasuredBaseline* Measured::baseline() const {
  const MeasuredBaseline* fastest = nullptr;
  for (const MeasuredBaseline& one : baselines) {
    if (one.outcome != MeasuredAs::Timed) continue;
    if (fastest == nullptr || one.median_us < fastest->median_us) fastest = &one;
  }
  return fastest;
}

std::optional<double> Measured::baseline_ratio() const {
  if (winner() == nullptr || baseline() == nullptr) return std::nullopt;
  return baseline()->median_us / winner()->median_us;
}

bool Measured::is_baseline_fastest() const {
  return baseline() != nullptr && (winner() == nullptr || *baseline_ratio() < 1);
}

std::int64_t Measured::count(MeasuredAs outcome) const {
  return std::ranges::count(all, outcome, &MeasuredSchedule::outcome);
}

Checked<Measured> measure(Session& session, const Program& program, const Mesh& mesh,
                          const SearchResult& found, const MeasureRequest& request) {
  return Measurement(session, request).run(program, mesh, found);
}

}  // namespace harpe
