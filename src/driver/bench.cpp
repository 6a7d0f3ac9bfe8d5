#include "driver/bench.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "driver/bench_inputs.h"
#include "driver/certify.h"
#include "driver/check.h"
#include "driver/statistics.h"
#include "driver/turns.h"
#include "ir/interpret.h"
#include "schedule/named/registry.h"

namespace harpe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLinkBytesPerUs = 389e3;                      // NVLink, each way
constexpr std::int64_t kMostCompared = std::int64_t{1} << 28;  // elements of outputs
constexpr std::int64_t kCpuRanks = 4;

// One that takes its turns.
struct Contender {
  BenchEntry entry;
  std::unique_ptr<Executor> executor;  // none: it cannot run, or no more
  std::optional<Plan> plan;            // of ours
  std::function<double()> arithmetic_us;
  std::vector<double> times;
  double expected_us = 0;  // of an execution

  void refuse(const Diag& diag) {
    entry.reason = render_message(diag);
    entry.code = info(diag.code).name;
    executor.reset();
  }
  void fail(const std::string& reason) {
    entry.reason = reason;
    executor.reset();
  }
};

std::int64_t elements_of_outputs(const Program& program) {
  std::int64_t elements = 0;
  for (const Buffer* const buffer : buffers_of(program)) {
    if (buffer->role != Role::Out) continue;
    std::int64_t count = 1;
    for (const std::int64_t size : shape_of(program, *buffer)) count *= size;
    elements = std::max(elements, count);
  }
  return elements;
}

// One case, from its contenders to their times.
class Contest {
 public:
  Contest(Session& session, const BenchRequest& request, const std::string& mesh,
          const Checked<Baselines>& baselines)
      : session_(session), request_(request), baselines_(baselines) {
    subject_.target = request.suite;
    subject_.mesh = mesh;
  }

  [[nodiscard]] Checked<BenchRow> hold(const BenchCase& what, const BenchProgress& progress) {
    row_.what = what;
    subject_.parameters = what.parameters;
    HP_TRY(program_, session_.program(subject_));
    HP_TRY(const Mesh mesh, session_.mesh(subject_));
    row_.link_us = least_link_bytes(program_, static_cast<double>(mesh.ranks())) / kLinkBytesPerUs;
    inputs_ = draw_bench_inputs(program_, request_.seed);
    add_baselines();
    add_schedules(mesh, progress);
    for (Contender& one : all_) {
      progress(what.name + ": warming up " + one.entry.name);
      warm_up(one);
    }
    compare();
    for (std::int64_t round = 0; round < request_.rounds; ++round) {
      progress(what.name + ": round " + std::to_string(round + 1));
      for (std::size_t i = 0; i < all_.size(); ++i) {
        // Who goes first changes too.
        measure(all_[(i + static_cast<std::size_t>(round)) % all_.size()]);
      }
    }
    return finish();
  }

 private:
  void add_baselines() {
    if (!baselines_.ok()) return;
    for (LibraryWay& way : baselines_->ways(program_, row_.what.parameters)) {
      Contender& one = all_.emplace_back();
      one.entry.name = way.name;
      one.entry.is_baseline = true;
      one.arithmetic_us = way.arithmetic_us;
      if (way.executor.ok()) {
        one.executor = std::move(way.executor).value();
        give_inputs(one);
      } else {
        one.refuse(way.executor.error());
      }
    }
  }

  void add_schedules(const Mesh& mesh, const BenchProgress& progress) {
    std::vector<std::string> names;
    for (const Applicability& one : find_applicable(request_.suite, program_, mesh)) {
      if (one.script.ok()) {
        names.emplace_back(one.name);
      } else {
        row_.not_here.emplace_back(one.name);
      }
    }
    names.emplace_back("auto");
    if (!request_.schedules.empty()) names = request_.schedules;
    for (const std::string& name : names) {
      progress(row_.what.name + ": preparing " + name);
      Contender& one = all_.emplace_back();
      one.entry.name = name;
      prepare(one);
    }
    mark_cpu_baseline();
  }

  // Without libraries the bulk schedule is what others are compared with.
  void mark_cpu_baseline() {
    if (request_.backend.backend != Backend::Cpu) return;
    for (const char* name : {"bulk", "allgather"}) {
      const auto found = std::ranges::find_if(
          all_, [&](const Contender& one) { return one.entry.name == name && one.executor; });
      if (found == all_.end()) continue;
      found->entry.is_baseline = true;
      std::rotate(all_.begin(), found, found + 1);
      return;
    }
  }

  void prepare(Contender& one) {
    subject_.schedule = one.entry.name;
    Checked<Plan> plan = session_.plan(subject_);
    if (!plan.ok()) return one.refuse(plan.error());
    const Checked<Certificate> proved = certify(*plan, level_for(*plan));
    if (!proved.ok()) return one.refuse(proved.error());
    Checked<std::unique_ptr<Executor>> executor = make_executor(*plan, request_.backend);
    if (!executor.ok()) return one.refuse(executor.error());
    one.executor = std::move(executor).value();
    one.plan = std::move(plan).value();
    give_inputs(one);
  }

  void give_inputs(Contender& one) {
    for (const auto& [name, tensor] : inputs_) {
      const Checked<Ok> given = one.executor->set_input(name, tensor);
      if (!given.ok()) return one.refuse(given.error());
    }
  }

  void warm_up(Contender& one) const {
    if (!one.executor) return;
    const Result<double, FaultReport> time =
        harpe::warm_up(*one.executor, request_.backend.wait_limit);
    if (!time.ok()) return one.fail(render(time.error()));
    one.expected_us = *time;
  }

  void measure(Contender& one) const {
    if (!one.executor) return;
    const auto times =
        take_turn(*one.executor, one.expected_us, request_.iterations, request_.backend.wait_limit);
    if (!times.ok()) return one.fail(render(times.error()));
    one.times.insert(one.times.end(), times->begin(), times->end());
  }

  [[nodiscard]] Checked<TensorMap> outputs_of(const Contender& one) const {
    TensorMap outputs;
    for (const Buffer* const buffer : buffers_of(program_)) {
      // Libraries are asked for the result alone.
      if (buffer->role != Role::Out || (!one.plan && buffer->name == "lse")) continue;
      HP_TRY(HostTensor tensor, one.executor->output(buffer->name));
      outputs.emplace(buffer->name, std::move(tensor));
    }
    return outputs;
  }

  void compare() {
    if (elements_of_outputs(program_) > kMostCompared) return;
    const bool small = flops_of(program_) <= kFullCheckFlops;
    std::optional<TensorMap> wanted;
    for (Contender& one : all_) {
      if (!one.executor) continue;
      const Checked<TensorMap> outputs = outputs_of(one);
      if (!outputs.ok()) {
        one.refuse(outputs.error());
        continue;
      }
      if (wanted) compare_with(*wanted, *outputs, one);
      if (!wanted) wanted = *outputs;
      if (request_.check && small && one.plan) check_against_reference(*outputs, one);
    }
  }

  void compare_with(const TensorMap& wanted, const TensorMap& outputs, Contender& one) const {
    const Plan* plan = nullptr;
    for (const Contender& other : all_) {
      if (other.plan && (plan == nullptr || &other == &one)) plan = &*other.plan;
    }
    if (plan == nullptr) return;
    double worst = -1;
    for (const auto& [name, tensor] : outputs) {
      const auto other = wanted.find(name);
      if (other == wanted.end()) continue;
      const double difference = largest_difference(tensor, other->second, name == "lse");
      const double bound = bench_bound(*plan, name);
      if (difference / bound <= worst) continue;
      worst = difference / bound;
      one.entry.difference = difference;
      one.entry.bound = bound;
    }
  }

  void check_against_reference(const TensorMap& outputs, Contender& one) const {
    const int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    const Checked<CheckReport> report =
        check_outputs(*one.plan, inputs_, outputs, request_.seed, threads);
    one.entry.checked = report.ok() && report->passed();
  }

  [[nodiscard]] BenchRow finish() {
    for (Contender& one : all_) {
      if (one.executor && !one.times.empty()) {
        const double median = quantile(one.times, 0.5);
        one.entry.median_us = median;
        one.entry.least_us = std::ranges::min(one.times);
        one.entry.spread = (quantile(one.times, 0.75) - quantile(one.times, 0.25)) / median;
        if (one.arithmetic_us) {
          const double alone = one.arithmetic_us();
          row_.arithmetic_us = std::min(row_.arithmetic_us.value_or(alone), alone);
        }
      }
      row_.entries.push_back(std::move(one.entry));
    }
    return std::move(row_);
  }

  Session& session_;
  const BenchRequest& request_;
  const Checked<Baselines>& baselines_;
  Request subject_;
  Program program_;
  TensorMap inputs_;
  std::vector<Contender> all_;
  BenchRow row_;
};

// As asked for, or as many as there are places. Errors: count_gpus'; G070.
Checked<std::int64_t> ranks_of(const BenchRequest& request) {
  if (request.backend.backend == Backend::Cpu) return request.ranks.value_or(kCpuRanks);
  HP_TRY(const int gpus, count_gpus());
  const std::int64_t ranks = request.ranks.value_or(gpus);
  const bool fits = ranks <= gpus || (gpus > 0 && request.backend.share_gpus);
  if (ranks > 0 && fits) return ranks;
  return make_diag(DiagCode::G070, {{"ranks", std::max<std::int64_t>(1, ranks)}, {"gpus", gpus}});
}

Checked<Baselines> open_baselines(const BenchRequest& request, std::int64_t ranks) {
  if (request.backend.backend == Backend::Cpu) {
    return make_diag(DiagCode::G081,
                     {{"what", "CPU ranks"}, {"reason", "the libraries are for GPUs"}});
  }
  return Baselines::open({.ranks = static_cast<int>(ranks),
                          .backend = request.backend,
                          .folders = request.library_folders});
}

}  // namespace

Checked<std::vector<BenchCase>> cases_of(const BenchRequest& request) {
  HP_TRY(std::vector<BenchCase> cases, bench_cases(request.suite, request.backend.backend));
  if (!request.parameters.empty()) {
    BenchCase own{.name = "", .parameters = request.parameters};
    for (const std::string& word : own.parameters) own.name += (own.name.empty() ? "" : " ") + word;
    cases = {own};
  }
  std::erase_if(cases, [&](const BenchCase& each) {
    return each.name.find(request.only) == std::string::npos;
  });
  return cases;
}

Checked<BenchReport> bench(Session& session, const BenchRequest& request,
                           const BenchProgress& progress, const BenchSoFar& so_far) {
  HP_TRY(const std::vector<BenchCase> cases, cases_of(request));
  BenchReport report;
  HP_TRY(report.ranks, ranks_of(request));
  report.mesh = bench_axis(request.suite) + "=" + std::to_string(report.ranks);
  const Checked<Baselines> baselines = open_baselines(request, report.ranks);
  report.libraries = baselines.ok() ? baselines->describe() : render_message(baselines.error());
  const Clock::time_point start = Clock::now();
  for (const BenchCase& what : cases) {
    if (std::chrono::duration<double>(Clock::now() - start).count() > request.budget_s) {
      BenchRow& row = report.rows.emplace_back();
      row.what = what;
      row.skipped = "the budget was spent before";
      continue;
    }
    HP_TRY(BenchRow row, Contest(session, request, report.mesh, baselines).hold(what, progress));
    report.rows.push_back(std::move(row));
    so_far(report);
  }
  return report;
}

}  // namespace harpe
