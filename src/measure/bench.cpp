#include "measure/bench.h"

#include <algorithm>
#include <chrono>

#include "compile/schedule_names.h"
#include "measure/contest.h"
#include "run/gpus.h"
#include "schedule/named/registry.h"

namespace harpe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kCpuRanks = 4;

// The requested ranks, or as many as there are GPUs. Errors: find_gpus', Gpus::count's; G070.
Checked<std::int64_t> ranks_of(const BenchRequest& request) {
  if (request.backend.backend == Backend::Cpu) return request.ranks.value_or(kCpuRanks);
  HP_TRY(const Gpus* const back_end, find_gpus());
  HP_TRY(const int gpus, back_end->count());
  const std::int64_t ranks = request.ranks.value_or(gpus);
  const bool fits = ranks <= gpus || (gpus > 0 && request.backend.share_gpus);
  if (ranks > 0 && fits) return ranks;
  return make_diag(DiagCode::G070, {{"ranks", std::max<std::int64_t>(1, ranks)}, {"gpus", gpus}});
}

Checked<std::unique_ptr<Baselines>> open_baselines(const BenchRequest& request,
                                                   std::int64_t ranks) {
  if (request.backend.backend == Backend::Cpu) {
    return make_diag(DiagCode::G081,
                     {{"what", "CPU ranks"}, {"reason", "the libraries are for GPUs"}});
  }
  HP_TRY(const Gpus* const gpus, find_gpus());
  return gpus->open_baselines(static_cast<int>(ranks), request.backend.places);
}

// The free memory of the ranks' GPUs; empty for CPU ranks, and where it cannot be read.
FreeMemory watch_memory(const BenchRequest& request, std::int64_t ranks) {
  if (request.backend.backend == Backend::Cpu) return {};
  const Checked<const Gpus*> gpus = find_gpus();
  if (!gpus.ok()) return {};
  const Checked<int> count = (*gpus)->count();
  if (!count.ok()) return {};
  const Checked<FreeMemory> watched =
      (*gpus)->watch_memory(static_cast<int>(std::min<std::int64_t>(ranks, *count)));
  return watched.ok() ? *watched : FreeMemory();
}

// A name that no operator has is probably misspelt. Errors: U113.
Checked<Ok> check_schedule_names(const BenchRequest& request) {
  const std::vector<std::string> operators = operators_with_schedules();
  for (const std::string& name : request.schedules) {
    if (name.ends_with(".sched")) continue;
    const bool is_known = std::ranges::any_of(
        operators, [&](const std::string& one) { return check_schedule_name(one, name).ok(); });
    if (!is_known) return check_schedule_name(request.suite, name);
  }
  return Ok{};
}

// The first reason, if no case has any of the requested schedules.
std::optional<Diag> find_whole_lack(const BenchReport& report) {
  const bool any = std::ranges::any_of(report.rows, [](const BenchRow& row) {
    return !row.entries.empty() || row.not_here.empty();
  });
  if (any || report.rows.empty()) return std::nullopt;
  const BenchLack& first = report.rows.front().not_here.front();
  return with_note(first.why, "no case of the suite has a schedule that was asked for");
}

}  // namespace

void add_taken(const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after,
               std::vector<std::int64_t>& taken) {
  if (before.size() != after.size()) return;
  taken.resize(before.size(), 0);
  for (std::size_t gpu = 0; gpu < before.size(); ++gpu) taken[gpu] += before[gpu] - after[gpu];
}

Checked<std::vector<BenchCase>> cases_of(const BenchRequest& request, std::int64_t ranks) {
  HP_TRY(std::vector<BenchCase> cases, bench_cases(request.suite, request.backend.backend, ranks));
  if (!request.parameters.empty()) {
    BenchCase own{.name = "", .parameters = request.parameters};
    for (const std::string& word : own.parameters) own.name += (own.name.empty() ? "" : " ") + word;
    cases = {own};
  }
  std::erase_if(cases, [&](const BenchCase& each) {
    return each.name.find(request.only) == std::string::npos;
  });
  if (cases.empty()) {
    return make_diag(DiagCode::U109,
                     {{"option:flag", "{option:cases}"},
                      {"text", request.only},
                      {"option:wanted", "part of a case's name, as `{option:list}` shows them"}});
  }
  return cases;
}

Checked<BenchReport> bench(Session& session, const BenchRequest& request,
                           const BenchProgress& progress, const BenchSoFar& so_far) {
  // The suite's name is checked first, whether there is a GPU or not.
  HP_REQUIRE_OK(bench_cases(request.suite, request.backend.backend, 1));
  HP_REQUIRE_OK(check_schedule_names(request));
  BenchReport report;
  HP_TRY(report.ranks, ranks_of(request));
  HP_TRY(const std::vector<BenchCase> cases, cases_of(request, report.ranks));
  report.mesh = bench_axis(request.suite) + "=" + std::to_string(report.ranks);
  const Checked<std::unique_ptr<Baselines>> baselines = open_baselines(request, report.ranks);
  report.libraries = baselines.ok() ? (*baselines)->describe() : render_message(baselines.error());
  const FreeMemory memory = watch_memory(request, report.ranks);
  const Clock::time_point start = Clock::now();
  for (const BenchCase& what : cases) {
    if (std::chrono::duration<double>(Clock::now() - start).count() > request.budget_s) {
      BenchRow& row = report.rows.emplace_back();
      row.what = what;
      row.skipped = "the budget was spent before";
      continue;
    }
    const ContestSetting setting{.session = session,
                                 .request = request,
                                 .mesh = report.mesh,
                                 .baselines = baselines,
                                 .memory = memory};
    HP_TRY(BenchRow row, hold_contest(setting, what, progress));
    report.rows.push_back(std::move(row));
    so_far(report);
  }
  if (const std::optional<Diag> lack = find_whole_lack(report)) return *lack;
  return report;
}

}  // namespace harpe
