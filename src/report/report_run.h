#pragma once

#include <string>

#include "plan/plan.h"
#include "report/page.h"
#include "run/run.h"

namespace harpe {

// The results of a run: the timeline of the last execution, the times of all, and the check.
struct ReportedRun {
  std::string title;
  std::string command;
  std::string version;
  const Plan* plan = nullptr;
  const RunOutcome* outcome = nullptr;  // traced, without a fault
  Backend backend = Backend::Cpu;
};
[[nodiscard]] ReportPage make_run_page(const ReportedRun& run);
// Errors: I102.
[[nodiscard]] Checked<Ok> write_run_report(const std::string& path, const ReportedRun& run);

}  // namespace harpe
