#pragma once

#include "cli/command_line.h"
#include "compile/session.h"
#include "support/diag.h"

namespace harpe::cli {

// One verb per file. Each function returns an exit status, or why it refused.
[[nodiscard]] Checked<int> list_operators(const CommandLine& line);
[[nodiscard]] Checked<int> explain_diagnostic(const CommandLine& line);
[[nodiscard]] Checked<int> use_cache(const CommandLine& line);
[[nodiscard]] Checked<int> list_kernels(const CommandLine& line);
[[nodiscard]] Checked<int> examine_machine(const CommandLine& line);
[[nodiscard]] Checked<int> list_machines(const CommandLine& line);
[[nodiscard]] Checked<int> profile_host(const CommandLine& line);
[[nodiscard]] Checked<int> profile_transport(const CommandLine& line);
[[nodiscard]] Checked<int> tune_schedule(const CommandLine& line, Session& session);
[[nodiscard]] Checked<int> validate_predictions(const CommandLine& line, Session& session);
[[nodiscard]] Checked<int> show_text(const CommandLine& line, Session& session);
[[nodiscard]] Checked<int> print_schedules(const CommandLine& line, Session& session);
[[nodiscard]] Checked<int> lower_schedule(const CommandLine& line, Session& session);
[[nodiscard]] Checked<int> verify_plan(const CommandLine& line, Session& session);
[[nodiscard]] Checked<int> run_plan(const CommandLine& line, Session& session);
[[nodiscard]] Checked<int> simulate_plan(const CommandLine& line, Session& session);
[[nodiscard]] Checked<int> run_bench(const CommandLine& line, Session& session);
[[nodiscard]] Checked<int> compare_policies(const CommandLine& line);
[[nodiscard]] Checked<int> list_taxes_of(const CommandLine& line, Session& session);

}  // namespace harpe::cli
