#include "cli/request.h"

#include "driver/target.h"

namespace harpe::cli {

Checked<Request> request_of(const CommandLine& line) {
  if (line.words.empty()) {
    return make_diag(DiagCode::U110, {{"verb", line.verb}, {"what", "an operator or a file"}});
  }
  return Request{.target = line.words.front(),
                 .parameters = {line.words.begin() + 1, line.words.end()},
                 .mesh = line.value("mesh"),
                 .schedule = line.value("schedule")};
}

Checked<Request> operator_request_of(const CommandLine& line) {
  HP_TRY(Request request, request_of(line));
  if (kind_of(request.target) == TargetKind::PlanFile) {
    return make_diag(DiagCode::U119, {{"verb", line.verb}, {"path", request.target}});
  }
  return request;
}

}  // namespace harpe::cli
