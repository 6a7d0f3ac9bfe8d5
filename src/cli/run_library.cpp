#include "cli/run_library.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/run_report.h"
#include "compile/library_operators.h"
#include "compile/schedule_names.h"
#include "compile/target.h"
#include "measure/library_run.h"

namespace harpe::cli {
namespace {

bool asks_for_libraries(const CommandLine& line) {
  return line.value("schedule").value_or("") == kLibrary;
}

// A plan file's contents and `--inject` apply only to plans.
Checked<Ok> check_words(const CommandLine& line, const Request& subject) {
  if (kind_of(subject.target) == TargetKind::PlanFile) {
    return make_diag(DiagCode::U114, {{"what", "--schedule"}, {"path", subject.target}});
  }
  if (!subject.homes.empty() || subject.layout != "any") {
    return no_library("libraries choose homes and layouts themselves");
  }
  if (!line.has("inject")) return Ok{};
  return no_library("libraries have no tasks for `--inject` to break");
}

std::string print_candidate(const LibraryCandidate& one) {
  return one.name + (one.median_us ? ", " + print_us(*one.median_us) : ": " + one.reason);
}

Json to_json(const LibraryCandidate& one) {
  return {{"name", one.name},
          {"time_us", one.median_us ? Json(*one.median_us) : Json()},
          {"reason", one.reason}};
}

Checked<int> show_outcome(const CommandLine& line, const Request& subject,
                          const RunRequest& request, const LibraryOutcome& ran) {
  const std::string mesh = subject.mesh.value_or("");
  Rows rows = {{"library", ran.name}};
  Json candidates = Json::array();
  for (const LibraryCandidate& one : ran.candidates) {
    candidates.push_back(to_json(one));
    if (one.name != ran.name) rows.emplace_back("not chosen", print_candidate(one));
  }
  add_times(ran.outcome.stats, rows);
  Json json = start_json(line);
  json["operator"] = subject.target;
  json["mesh"] = mesh;
  json["schedule"] = kLibrary;
  json["library"] = ran.name;
  json["libraries"] = std::move(candidates);
  json["inputs"] = inputs_to_json(line, request);
  json["time_us"] = times_to_json(ran.outcome.stats);
  if (ran.outcome.check) add_check(*ran.outcome.check, rows, json);
  const std::string title = subject.target + " on " + mesh + ", by libraries\n";
  HP_REQUIRE_OK(show_results(line, title + print_rows(rows), json));
  if (ran.outcome.check && !ran.outcome.check->passed()) return failure_of(*ran.outcome.check);
  return kDone;
}

Checked<int> finish(const CommandLine& line, const Request& subject, const RunRequest& request,
                    const LibraryOutcome& ran) {
  if (!ran.outcome.fault) return show_outcome(line, subject, request, ran);
  print_error("fault: " + subject.target + ", by libraries\n" + render(*ran.outcome.fault));
  return kFault;
}

Diag advise(const Diag& refusal) {
  if (refusal.code != DiagCode::G081) return refusal;
  std::string known;
  for (const std::string& suite : library_operators())
    known += (known.empty() ? "`" : ", `") + suite + "`";
  return with_note(
      refusal, "baselines are of " + known + "; leave `--schedule library` out to run a schedule");
}

// "note: `all-gather, GEMM` took 84.1 us where …"
std::string print_known(const CachedSchedule& known) {
  const CachedTime& time = *known.measured;
  return fmt::format(
      "note: `{}` of the libraries took {:.3f} of the time of the fastest schedule, `{}`, when "
      "they were measured: {} and {}; ",
      time.baseline->name, time.baseline->time.seconds() / time.time.seconds(), known.label,
      print_seconds(time.baseline->time.seconds()), print_seconds(time.time.seconds()));
}

}  // namespace

Checked<Ok> check_launch_by_libraries(const CommandLine& line) {
  if (!asks_for_libraries(line)) return Ok{};
  return no_library("libraries run the ranks of one process, without `--launch`");
}

Checked<std::optional<int>> run_by_libraries(const CommandLine& line, Session& session,
                                             const Request& subject, const RunRequest& request) {
  const bool is_asked_for = asks_for_libraries(line);
  std::optional<CachedSchedule> known;
  if (!is_asked_for && request.backend.backend == Backend::Cuda) {
    known = recall_slower_schedule(session, subject);
  }
  if (!is_asked_for && !known) return std::optional<int>();
  Checked<Ok> possible = check_words(line, subject);
  if (possible.ok()) {
    if (is_first(request.backend)) show_progress("running libraries");
    const Checked<LibraryOutcome> ran =
        run_library(session, subject, request, ways_here(subject, request.backend));
    if (ran.ok()) {
      if (known) print_error(print_known(*known) + "they run, not the schedule\n");
      HP_TRY(const int status, finish(line, subject, request, *ran));
      return std::optional(status);
    }
    possible = ran.error();
  }
  if (is_asked_for) return advise(possible.error());
  if (is_first(request.backend)) {
    print_error(print_known(*known) +
                "the schedule runs, for they cannot: " + print_message(possible.error()) + "\n");
  }
  return std::optional<int>();
}

}  // namespace harpe::cli
