#include "cli/request.h"

#include "driver/target.h"

namespace harpe::cli {

Checked<Request> request_of(const CommandLine& line) {
  if (line.words.empty()) {
    return make_diag(DiagCode::U110, {{"verb", line.verb}, {"what", "an operator or a file"}});
  }
  HP_TRY(const std::vector<NamedFile> files, parse_named_files("--input", line.values("input")));
  Request request{.target = line.words.front(),
                  .parameters = {line.words.begin() + 1, line.words.end()},
                  .inputs = {},
                  .mesh = line.value("mesh"),
                  .schedule = line.value("schedule")};
  for (const NamedFile& file : files) request.inputs.push_back(file.name);
  return request;
}

Checked<Request> operator_request_of(const CommandLine& line) {
  HP_TRY(Request request, request_of(line));
  if (kind_of(request.target) == TargetKind::PlanFile) {
    return make_diag(DiagCode::U119, {{"verb", line.verb}, {"path", request.target}});
  }
  return request;
}

}  // namespace harpe::cli
