#pragma once

#include <optional>
#include <string>
#include <vector>

#include "driver/session.h"
#include "machine/machine.h"
#include "sim/simulate.h"
#include "sim/taxes.h"
#include "support/diag.h"

namespace harpe {

// The machine a command line names, or the one that the mesh fits on. Errors: load_machine's,
// default_machine's.
[[nodiscard]] Checked<Machine> machine_for(const std::optional<std::string>& name,
                                           const Mesh& mesh);

// "3=25.5": rank 3 starts 25.5 microseconds late. Errors: U109.
[[nodiscard]] Checked<SimulateOptions::Delay> parse_delay(const std::string& text,
                                                          std::int64_t ranks);
// "graph", "host". Errors: U109.
[[nodiscard]] Checked<Launch> parse_launch(const std::string& text);

// How one schedule's time divides; or why it does not apply, or does not fit the machine.
struct TaxRow {
  std::string schedule;
  std::optional<Taxes> taxes;
  std::string bound = {};  // the name of Taxes::bound
  std::optional<Diag> refusal;
};
struct TaxList {
  std::string program;
  Mesh mesh;
  Machine machine;
  std::vector<TaxRow> rows;
};
// Of the schedule that the request or its plan file says; without one, of every named schedule that
// applies, fastest first, then those that do not fit the machine. Errors: Session's;
// machine_for's; list_schedules'; M117; M118 where only one schedule is asked for.
[[nodiscard]] Checked<TaxList> list_taxes(Session& session, const Request& request,
                                          const std::optional<std::string>& machine, Launch launch);

// "compute", "link", …
[[nodiscard]] std::string_view print(Spending spending);

}  // namespace harpe
