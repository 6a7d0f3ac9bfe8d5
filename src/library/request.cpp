#include "library/request.h"

#include <optional>
#include <variant>

#include "compile/target.h"
#include "support/build.h"

namespace harpe::library {
namespace {

// Names and paths contain neither braces nor newlines.
bool is_text(const std::string& word) { return word.find_first_of("{\n") != std::string::npos; }

std::string print_value(const v1::Value& value) {
  if (const auto* const integer = std::get_if<std::int64_t>(&value))
    return std::to_string(*integer);
  if (const auto* const flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  return std::get<std::string>(value);
}

}  // namespace

std::string build_version() { return identify_build(HARPE_VERSION); }

void set_machine(Request& request, const std::string& machine) {
  if (machine.empty()) return;
  request.machine = machine;
  if (!is_text(machine)) return;
  request.machine_text = machine;
  request.machine = "question.machine";
}

harpe::Checked<Request> make_subject(const std::string& op) {
  Request request{.target = op, .parameters = {}, .mesh = {}, .schedule = {}};
  if (is_text(op)) {
    request.program_text = op;
    request.target = "question.op";
  } else if (kind_of(op) == TargetKind::PlanFile) {
    return make_diag(DiagCode::U119, {{"verb", "plan"}, {"path", op}});
  }
  return request;
}

harpe::Checked<Request> make_request(const v1::Question& question, Call& call) {
  HP_TRY(Request request, make_subject(question.op));
  for (const auto& [name, value] : question.parameters) {
    request.parameters.push_back(name + "=" + print_value(value));
  }
  request.mesh = question.mesh;
  request.schedule = question.schedule;
  if (is_text(question.schedule)) {
    request.schedule_text = question.schedule;
    request.schedule = "question.sched";
  }
  for (const auto& [buffer, home] : question.homes) request.homes.push_back(buffer + "=" + home);
  request.layout = question.layout;
  set_machine(request, question.machine);
  request.cache = call.options().cache;
  request.version = build_version();
  request.patience = call.options().patience;
  if (call.options().progress) {
    request.progress = [&call](std::string_view stage, std::int64_t done, std::int64_t of) {
      call.report(stage, done, of);
    };
    request.interrupted = [&call] { return call.is_given_up(); };
  }
  return request;
}

}  // namespace harpe::library
