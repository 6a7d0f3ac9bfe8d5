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

// The exit statuses of the contract.
constexpr int kDone = 0;
constexpr int kRefused = 1;
constexpr int kUsage = 2;
constexpr int kFault = 3;
constexpr int kBug = 70;

[[nodiscard]] int exit_status_of(const Diag& diag);

// An option of a question as the command line has it: "--cpu-kernels own".
[[nodiscard]] std::string print_flag(std::string_view option, std::string_view value = "");
// render() and render_message(), with flags.
[[nodiscard]] std::string print_diag(const Diag& diag, std::string_view severity = "error");
[[nodiscard]] std::string print_message(const Diag& diag);

// To standard output, and to standard error; both printable (support/printable.h). Errors: I102.
[[nodiscard]] Checked<Ok> print_out(std::string_view text);
void print_error(std::string_view text);
void print_warning(const Diag& diag);
// What is being done now; shown only where standard error is a terminal, and wiped by what follows.
void show_progress(std::string_view text);

// Lines of "  name   value", values aligned.
using Rows = std::vector<std::pair<std::string, std::string>>;
[[nodiscard]] std::string print_rows(const Rows& rows);
// Lines of cells in aligned columns, indented by two.
[[nodiscard]] std::string print_table(const std::vector<std::vector<std::string>>& lines);

[[nodiscard]] std::string print_seconds(double seconds);  // "12.3 ms", and so do the next
[[nodiscard]] std::string print_time(Picoseconds time);
[[nodiscard]] std::string print_us(double microseconds);

// The command as it may be typed again: operands, then flags by name, quoted for a shell.
[[nodiscard]] std::string print_command(const CommandLine& line);

// The object `--json` writes: schema version and command, then what the verb adds.
[[nodiscard]] Json start_json(const CommandLine& line);
// What the command works on, as the inputs of that object: target and parameters, as given.
[[nodiscard]] Json subject_to_json(const CommandLine& line);
// Tells on standard error that the command has written a file.
void announce(std::string_view path);
// The same of every file that the flag names, if it is there.
void announce_files_of(const CommandLine& line, std::string_view flag);
// Writes `text` to the file that the flag names, if it is there, and announces it. Errors: I102.
[[nodiscard]] Checked<Ok> write_file_of(const CommandLine& line, std::string_view flag,
                                        std::string_view text);
// Every file that the command makes, before any work: each can be written, and no two are the same.
// Errors: U109 `-` where it is no file, U118, I102.
[[nodiscard]] Checked<Ok> check_places(const CommandLine& line);
// Shows a verb's results: the text on standard output, and the object where `--json` says. With
// `--json -` the object takes the text's place. Errors: I102.
[[nodiscard]] Checked<Ok> show_results(const CommandLine& line, std::string_view text,
                                       const Json& json);

}  // namespace harpe::cli
