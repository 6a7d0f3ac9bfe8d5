#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compile/tune.h"
#include "machine/machine.h"
#include "plan/plan.h"
#include "report/page.h"
#include "search/search.h"
#include "sim/simulate.h"
#include "sim/taxes.h"
#include "support/diag.h"

namespace harpe {

// A plan with its figures, which a report compares.
struct ReportedPlan {
  std::string label;  // "zigzag_ring"
  Plan plan;
  Simulation simulation;
  Taxes taxes;
};
// Requires: a verified plan. Errors: check_fits'.
[[nodiscard]] Checked<ReportedPlan> report_plan(std::string label, Plan plan,
                                                const Machine& machine,
                                                const SimulateOptions& options);

// The best schedule of a search, then the best named schedules that it was compared with; empty if
// there were too many ranks for a plan. Errors: lower's, for the best.
[[nodiscard]] Checked<std::vector<ReportedPlan>> report_search(const Program& program,
                                                               const Mesh& mesh,
                                                               const Machine& machine,
                                                               const SearchResult& result);

// The input of a report. The first plan is its subject; the others are compared with it.
struct ReportSource {
  std::string title;    // "attention on cp=8"
  std::string command;  // as typed
  std::string version;
  const Machine* machine = nullptr;
  std::vector<ReportedPlan> plans;
  const SearchResult* search = nullptr;   // that found the first plan
  std::vector<PageRefusal> refused = {};  // besides the search's
};

// The page of one or more simulated plans, and of the search between them. Requires: a plan or a
// search.
[[nodiscard]] ReportPage make_report_page(const ReportSource& source);
// Errors: I102.
[[nodiscard]] Checked<Ok> write_report(const std::string& path, const ReportSource& source);

// The report page of a search: the best schedule and the nearest named ones. Errors: lower's;
// check_fits'; I102.
[[nodiscard]] Checked<Ok> write_report(const std::string& path, const std::string& command,
                                       const std::string& version, const Tuned& tuned);

}  // namespace harpe
