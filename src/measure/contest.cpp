#include "measure/contest.h"

#include <algorithm>
#include <thread>

#include "compile/certify.h"
#include "compile/schedule_names.h"
#include "ir/interpret.h"
#include "measure/bench_inputs.h"
#include "measure/executor_pool.h"
#include "measure/tune_by_runs.h"
#include "measure/turns.h"
#include "run/check.h"
#include "run/gpus.h"
#include "run/memory.h"
#include "schedule/named/registry.h"

namespace harpe {
namespace {

constexpr std::int64_t kMostCompared = std::int64_t{1} << 28;  // elements of outputs
constexpr std::string_view kTuned = "tuned";

// On GPUs, smaller operands of a rank exist several times, so that no execution finds them in the
// L2 cache: four times its size.
constexpr std::int64_t kColdBytes = std::int64_t{256} << 20;
constexpr std::int64_t kMostCopies = 16;

// One entry of a case while it is timed.
struct Contender {
  BenchEntry entry;
  std::unique_ptr<Executor> executor;             // none if it cannot run, or not any more
  std::vector<std::unique_ptr<Executor>> copies;  // that alternate with it
  std::function<Checked<std::unique_ptr<Executor>>()> make_library;  // for libraries: makes a copy
  std::optional<Plan> plan;                                          // for Harpe's schedules
  std::function<Checked<double>(std::int64_t)> time_arithmetic;      // for libraries
  std::vector<double> arithmetic_us;                                 // of each round
  std::vector<double> times;
  std::vector<double> warm_us;      // of each turn of one copy
  std::vector<double> in_graph_us;  // of each turn in one graph
  double expected_us = 0;           // per execution
  bool is_warm = false;             // it has run, or cannot
  bool is_compared = false;
  bool is_short_of_memory = false;  // memory that others may hold
  std::vector<std::int64_t> taken;  // memory, by GPU

  void refuse(const Diag& diag) {
    entry.reason = render_message(diag);
    entry.code = info(diag.code).name;
    is_short_of_memory = may_be_short_of_memory(diag);
    drop();
  }
  void fail(const std::string& reason) {
    entry.reason = reason;
    drop();
  }
  void drop() {
    copies.clear();
    executor.reset();
  }
  [[nodiscard]] std::vector<Executor*> executors() const {
    std::vector<Executor*> all = {executor.get()};
    for (const auto& copy : copies) all.push_back(copy.get());
    return all;
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

// The inputs' bytes in host memory, including the copy that is on its way to a device.
std::int64_t bytes_of_inputs(const Program& program) {
  std::int64_t all = 0;
  std::int64_t largest = 0;
  for (const Buffer* const buffer : buffers_of(program)) {
    if (buffer->role == Role::Temp) continue;
    std::int64_t bytes = size_in_bytes(buffer->dtype);
    for (const std::int64_t size : shape_of(program, *buffer)) bytes *= size;
    largest = std::max(largest, bytes);
    if (buffer->role == Role::In) all += bytes;
  }
  return all + 2 * largest;
}

// The number of copies that makes a case's operands kColdBytes large; ranks hold parts of them.
std::int64_t copies_of(const Program& program, std::int64_t ranks) {
  std::int64_t bytes = 0;
  for (const Buffer* const buffer : buffers_of(program)) {
    if (buffer->role != Role::In) continue;
    std::int64_t whole = size_in_bytes(buffer->dtype);
    for (const std::int64_t size : shape_of(program, *buffer)) whole *= size;
    bytes += whole;
  }
  const std::int64_t of_rank = std::max<std::int64_t>(1, bytes / ranks);
  return std::clamp<std::int64_t>((kColdBytes + of_rank - 1) / of_rank, 1, kMostCopies);
}

// One case, from its contenders to their times.
class Contest {
 public:
  explicit Contest(const ContestSetting& setting)
      : session_(setting.session),
        request_(setting.request),
        baselines_(setting.baselines),
        memory_(setting.memory) {
    subject_.target = request_.suite;
    subject_.mesh = setting.mesh;
  }

  [[nodiscard]] Checked<BenchRow> hold(const BenchCase& what, const BenchProgress& progress) {
    row_.what = what;
    subject_.parameters = what.parameters;
    HP_TRY(program_, session_.program(subject_));
    HP_TRY(const Mesh mesh, session_.mesh(subject_));
    row_.limit = make_limit(program_, request_.suite, static_cast<double>(mesh.ranks()));
    // A turn has one execution more than its iterations, so more copies would not be used.
    if (request_.backend.backend == Backend::Cuda) {
      copies_ = std::min(copies_of(program_, mesh.ranks()), request_.iterations + 1);
    }
    if (const auto fits = check_memory("this case", bytes_of_inputs(program_)); !fits.ok()) {
      row_.skipped = render_message(fits.error());
      return std::move(row_);
    }
    std::vector<std::string> waiting = schedules_on(mesh);
    if (waiting.empty()) {
      row_.skipped = "none of the schedules that were asked for applies";
      return std::move(row_);
    }
    inputs_ = draw_bench_inputs(program_, request_.seed);
    if (request_.backend.backend == Backend::Cuda) {
      if (const auto gpus = find_gpus(); gpus.ok()) pinned_ = (*gpus)->pin(inputs_);
    }
    if (request_.tune_s) {
      progress(row_.what.name + ": tuning");
      tune_case(mesh);
      waiting.emplace_back(kTuned);
    }
    add_baselines();
    while (!waiting.empty()) waiting = take_turns(waiting, progress);
    return finish();
  }

 private:
  // Times as many contenders as fit into memory beside the baselines; returns the names of the
  // others.
  [[nodiscard]] std::vector<std::string> take_turns(const std::vector<std::string>& names,
                                                    const BenchProgress& progress) {
    std::vector<std::string> left;
    bool any = false;
    for (const std::string& name : names) {
      progress(row_.what.name + ": preparing " + name);
      Contender one;
      one.entry.name = name;
      prepare(one);
      if (one.is_short_of_memory && any) {
        left.push_back(name);
        continue;
      }
      any = any || one.executor;
      all_.push_back(std::move(one));
    }
    mark_cpu_baseline();
    for (Contender& one : all_) {
      if (one.is_warm) continue;
      progress(row_.what.name + ": warming up " + one.entry.name);
      warm_up(one);
    }
    compare();
    for (std::int64_t i = 0; i < request_.rounds_here(); ++i, ++round_) {
      progress(row_.what.name + ": round " + std::to_string(i + 1));
      for (std::size_t turn = 0; turn < all_.size(); ++turn) {
        // A different contender goes first each time.
        measure(all_[(turn + static_cast<std::size_t>(i)) % all_.size()]);
      }
    }
    for (Contender& one : all_) {
      if (one.executor && !one.entry.is_baseline) close(one);
    }
    return left;
  }

  // Why the case lacks this schedule.
  [[nodiscard]] std::optional<Diag> find_lack(const std::string& name,
                                              const std::vector<Applicability>& all) const {
    if (name.ends_with(".sched")) return std::nullopt;
    const Checked<Ok> known = check_schedule_name(request_.suite, name);
    if (!known.ok()) return known.error();
    const auto found = std::ranges::find(all, parse_schedule_name(name).base, &Applicability::name);
    if (found == all.end() || found->script.ok()) return std::nullopt;
    return found->script.error();
  }

  void add_baselines() {
    if (!baselines_.ok()) return;
    const Checked<std::vector<LibraryWay>> ways =
        (*baselines_)->ways(program_, row_.what.parameters, inputs_);
    if (!ways.ok()) return add_baseline("libraries").refuse(ways.error());
    for (const LibraryWay& way : *ways) {
      Contender& one = add_baseline(way.name);
      Checked<LibraryExecutor> made = way.make();
      if (!made.ok()) {
        one.refuse(made.error());
        continue;
      }
      one.executor = std::move(made->executor);
      one.time_arithmetic = std::move(made->time_arithmetic);
      one.make_library = [make = way.make]() -> Checked<std::unique_ptr<Executor>> {
        HP_TRY(LibraryExecutor copy, make());
        return std::move(copy.executor);
      };
      give_inputs(one);
    }
  }

  Contender& add_baseline(const std::string& name) {
    Contender& one = all_.emplace_back();
    one.entry.name = name;
    one.entry.is_baseline = true;
    return one;
  }

  [[nodiscard]] std::vector<std::string> schedules_on(const Mesh& mesh) {
    const std::vector<Applicability> all = find_applicable(request_.suite, program_, mesh);
    std::vector<std::string> asked = request_.schedules;
    if (asked.empty()) {
      for (const Applicability& one : all) asked.emplace_back(one.name);
      asked.emplace_back("auto");
    }
    std::vector<std::string> names;
    for (const std::string& name : asked) {
      if (const std::optional<Diag> lack = find_lack(name, all)) {
        row_.not_here.push_back({name, *lack});
      } else {
        names.push_back(name);
      }
    }
    return names;
  }

  // Without libraries the bulk schedule is the baseline.
  void mark_cpu_baseline() {
    const bool is_marked =
        std::ranges::any_of(all_, [](const Contender& one) { return one.entry.is_baseline; });
    if (request_.backend.backend != Backend::Cpu || is_marked) return;
    for (const char* name : {"bulk", "allgather"}) {
      const auto found = std::ranges::find_if(
          all_, [&](const Contender& one) { return one.entry.name == name && one.executor; });
      if (found == all_.end()) continue;
      found->entry.is_baseline = true;
      std::rotate(all_.begin(), found, found + 1);
      return;
    }
  }

  // Makes the plan that executing the best schedules of a search chooses, before others take
  // memory.
  void tune_case(const Mesh& mesh) {
    MeasuredTuneRequest request;
    request.subject = subject_;
    request.search.budget = std::chrono::seconds(*request_.tune_s);
    request.measure.emplace();
    request.measure->seed = request_.seed;
    request.measure->backend = request_.backend;
    const Checked<MeasuredTuned> tuned = tune(session_, request);
    if (!tuned.ok()) {
      tuned_ = tuned.error();
      return;
    }
    const Evaluated& chosen = tuned->result.top.front();
    tuned_label_ = chosen.label;
    tuned_ = session_.lower({.program = program_, .mesh = mesh, .script = {}, .form = chosen.form});
  }

  [[nodiscard]] Checked<Plan> make_plan(Contender& one) {
    if (one.entry.name == kTuned) {
      one.entry.label = tuned_label_;
      return *tuned_;
    }
    subject_.schedule = one.entry.name;
    return session_.plan(subject_);
  }

  void prepare(Contender& one) {
    Checked<Plan> plan = make_plan(one);
    if (!plan.ok()) return one.refuse(plan.error());
    const Checked<Certificate> proved = certify(*plan, level_for(*plan));
    if (!proved.ok()) return one.refuse(proved.error());
    const std::vector<std::int64_t> before = free_memory();
    Checked<std::unique_ptr<Executor>> executor = make_executor(*plan, request_.backend);
    if (!executor.ok()) return one.refuse(executor.error());
    one.executor = std::move(executor).value();
    one.plan = std::move(plan).value();
    give_inputs(one);
    add_taken(before, free_memory(), one.taken);
  }

  // Adds as many copies as fit into memory. Requires: it has run.
  void add_copies(Contender& one) const {
    while (one.executor && std::ssize(one.copies) + 1 < copies_) {
      Checked<std::unique_ptr<Executor>> copy =
          one.plan ? make_executor(*one.plan, request_.backend) : one.make_library();
      if (!copy.ok()) return;
      for (const auto& [name, tensor] : inputs_) {
        if (!(*copy)->set_input(name, tensor).ok()) return;
      }
      const auto time = harpe::warm_up(**copy, request_.backend.wait_limit);
      if (!time.ok()) return one.fail(render(time.error()));
      one.copies.push_back(std::move(copy).value());
    }
  }

  [[nodiscard]] std::vector<std::int64_t> free_memory() const {
    return memory_ ? memory_() : std::vector<std::int64_t>();
  }

  void give_inputs(Contender& one) {
    for (const auto& [name, tensor] : inputs_) {
      const Checked<Ok> given = one.executor->set_input(name, tensor);
      if (!given.ok()) return one.refuse(given.error());
    }
  }

  void warm_up(Contender& one) const {
    one.is_warm = true;
    if (!one.executor) return;
    const std::vector<std::int64_t> before = free_memory();
    const Result<double, FaultReport> time =
        harpe::warm_up(*one.executor, request_.backend.wait_limit);
    if (!time.ok()) return one.fail(render(time.error()));
    one.expected_us = *time;
    add_taken(before, free_memory(), one.taken);
    if (one.plan && request_.backend.backend == Backend::Cuda) one.entry.memory = memory_of(one);
    add_copies(one);
    one.entry.copies = 1 + std::ssize(one.copies);
  }

  [[nodiscard]] BenchMemory memory_of(const Contender& one) const {
    const std::int64_t ranks = one.plan->mesh.ranks();
    const std::int64_t gpus = one.taken.empty() ? ranks : std::ssize(one.taken);
    BenchMemory memory{.planned = arena_bytes(*one.plan) * ((ranks + gpus - 1) / gpus),
                       .allocated = one.executor->allocated_bytes(),
                       .taken = {}};
    if (!one.taken.empty()) memory.taken = std::ranges::max(one.taken);
    return memory;
  }

  void measure(Contender& one) const {
    if (!one.executor) return;
    const std::vector<Executor*> all = one.executors();
    const auto turn = [&](std::span<Executor* const> executors) {
      return take_turn(executors, one.expected_us, request_.iterations,
                       request_.backend.wait_limit);
    };
    const auto times = turn(all);
    if (!times.ok()) return one.fail(render(times.error()));
    one.times.insert(one.times.end(), times->begin(), times->end());
    one.entry.round_us[round_] = quantile(*times, 0.5);
    const auto in_graph =
        take_turn_in_graph(all, one.expected_us, request_.iterations, request_.backend.wait_limit);
    if (!in_graph.ok()) return one.fail(render(in_graph.error()));
    if (*in_graph) one.in_graph_us.push_back(**in_graph);
    if (all.size() > 1) {
      const auto warm = turn(std::span(all).first(1));
      if (!warm.ok()) return one.fail(render(warm.error()));
      one.warm_us.push_back(quantile(*warm, 0.5));
    }
    if (!one.time_arithmetic) return;
    const Checked<double> alone = one.time_arithmetic(request_.iterations);
    if (!alone.ok()) return one.refuse(alone.error());
    one.arithmetic_us.push_back(*alone);
  }

  [[nodiscard]] Checked<TensorMap> outputs_of(const Contender& one) const {
    TensorMap outputs;
    for (const Buffer* const buffer : buffers_of(program_)) {
      // Libraries compute only the result, without lse.
      if (buffer->role != Role::Out || (!one.plan && buffer->name == "lse")) continue;
      HP_TRY(HostTensor tensor, one.executor->output(buffer->name));
      outputs.emplace(buffer->name, std::move(tensor));
    }
    return outputs;
  }

  void compare() {
    if (elements_of_outputs(program_) > kMostCompared) return;
    const bool small = flops_of(program_) <= kFullCheckFlops;
    for (Contender& one : all_) {
      if (!one.executor || one.is_compared) continue;
      one.is_compared = true;
      const Checked<TensorMap> outputs = outputs_of(one);
      if (!outputs.ok()) {
        one.refuse(outputs.error());
        continue;
      }
      if (wanted_) compare_with(*wanted_, *outputs, one);
      if (!wanted_) wanted_ = *outputs;
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

  // Computes its statistics and frees its memory.
  void close(Contender& one) {
    if (one.executor && !one.times.empty()) {
      const double median = quantile(one.times, 0.5);
      one.entry.median_us = median;
      one.entry.least_us = std::ranges::min(one.times);
      one.entry.spread = (quantile(one.times, 0.75) - quantile(one.times, 0.25)) / median;
      if (!one.warm_us.empty()) one.entry.warm_us = quantile(one.warm_us, 0.5);
      if (!one.in_graph_us.empty()) one.entry.in_graph_us = quantile(one.in_graph_us, 0.5);
      if (!one.arithmetic_us.empty()) {
        const double alone = quantile(one.arithmetic_us, 0.5);
        row_.limit.arithmetic_us = std::min(row_.limit.arithmetic_us.value_or(alone), alone);
      }
    }
    one.drop();
  }

  [[nodiscard]] BenchRow finish() {
    for (Contender& one : all_) {
      close(one);
      row_.entries.push_back(std::move(one.entry));
    }
    return std::move(row_);
  }

  Session& session_;
  const BenchRequest& request_;
  const Checked<std::unique_ptr<Baselines>>& baselines_;
  const FreeMemory& memory_;  // empty where it is not watched
  Request subject_;
  Program program_;
  TensorMap inputs_;
  std::shared_ptr<const void> pinned_;  // of the inputs
  std::int64_t copies_ = 1;             // of operands
  std::vector<Contender> all_;
  std::int64_t round_ = 0;  // of the case; contenders that wait for memory get later rounds
  std::optional<Checked<Plan>> tuned_;
  std::string tuned_label_;
  std::optional<TensorMap> wanted_;  // outputs of the first contender
  BenchRow row_;
};

}  // namespace

Checked<BenchRow> hold_contest(const ContestSetting& setting, const BenchCase& what,
                               const BenchProgress& progress) {
  return Contest(setting).hold(what, progress);
}

}  // namespace harpe
