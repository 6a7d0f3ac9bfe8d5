#pragma once

#include <optional>
#include <string>

#include "ir/form.h"
#include "ir/program.h"
#include "schedule/script.h"
#include "support/diag.h"

namespace harpe {

// The contents of a `.sched` file: a script, a normal form, or a script with its normal form, as
// `harpe show` prints them.
struct ScheduleFile {
  std::optional<Script> script;
  std::optional<NormalForm> form;

  [[nodiscard]] const std::string& program() const;
  [[nodiscard]] const std::string& mesh() const;
};

// Errors: I103, T0xx, P0xx.
[[nodiscard]] Checked<ScheduleFile> parse_schedule_file(const std::string& text,
                                                        const std::string& path);
// Errors: I101; parse_schedule_file's.
[[nodiscard]] Checked<ScheduleFile> read_schedule_file(const std::string& path);

// Checks that both are written for `program`. Errors: I104.
[[nodiscard]] Checked<Ok> check_subject(const ScheduleFile& file, const Program& program,
                                        const std::string& path);

}  // namespace harpe
