#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "io/json.h"
#include "support/diag.h"
#include "support/units.h"

namespace harpe::cli {

// Exit statuses, which callers may rely on.
constexpr int kDone = 0;
constexpr int kRefused = 1;
constexpr int kUsage = 2;
constexpr int kFault = 3;
constexpr int kBug = 70;

[[nodiscard]] int exit_status_of(const Diag& diag);

// An option as the command line writes it: "--cpu-kernels own".
[[nodiscard]] std::string print_flag(std::string_view option, std::string_view value = "");
// render() and render_message(), with options as flags.
[[nodiscard]] std::string print_diag(const Diag& diag, std::string_view severity = "error");
[[nodiscard]] std::string print_message(const Diag& diag);

// Print to standard output, and to standard error, both made printable (support/printable.h).
// Errors: I102.
[[nodiscard]] Checked<Ok> print_out(std::string_view text);
void print_error(std::string_view text);
void print_warning(const Diag& diag);
// The current activity. It is shown only if standard error is a terminal, and later output erases
// it.
void show_progress(std::string_view text);

// Lines of "  name   value", values aligned.
using Rows = std::vector<std::pair<std::string, std::string>>;
[[nodiscard]] std::string print_rows(const Rows& rows);
// Lines of cells in aligned columns, indented by two.
[[nodiscard]] std::string print_table(const std::vector<std::vector<std::string>>& lines);

[[nodiscard]] std::string print_seconds(double seconds);  // "12.3 ms"; so do the next two
[[nodiscard]] std::string print_time(Picoseconds time);
[[nodiscard]] std::string print_us(double microseconds);

// The command to type again: operands, then flags by name, quoted for a shell.
[[nodiscard]] std::string print_command(const CommandLine& line);

// The object that `--json` writes: schema version and command; the verb adds the rest.
[[nodiscard]] Json start_json(const CommandLine& line);
// The command's subject in the inputs of that object: target and parameters, as given.
[[nodiscard]] Json subject_to_json(const CommandLine& line);
// Reports on standard error that the command has written a file.
void announce(std::string_view path);
// The same for every file that the flag names, if the flag is present.
void announce_files_of(const CommandLine& line, std::string_view flag);
// Writes `text` to the file that the flag names, if present, and announces it. Errors: I102.
[[nodiscard]] Checked<Ok> write_file_of(const CommandLine& line, std::string_view flag,
                                        std::string_view text);
// Checks all output files before any work: each can be written, and no two are the same. Errors:
// U109 `-` where a file is required, U118, I102.
[[nodiscard]] Checked<Ok> check_places(const CommandLine& line);
// Shows a verb's results: the text on standard output, and the object as `--json` requests. With
// `--json -` the object replaces the text. Errors: I102.
[[nodiscard]] Checked<Ok> show_results(const CommandLine& line, std::string_view text,
                                       const Json& json);

}  // namespace harpe::cli
