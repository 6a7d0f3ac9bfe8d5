#include "cli/run_command.h"

#include <filesystem>
#include <new>
#include <string>

#include "cli/command_line.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "compile/session.h"
#include "io/files.h"
#include "support/check.h"
#include "support/hash.h"
#include "support/threads.h"

namespace harpe::cli {
namespace {

Checked<int> dispatch(const CommandLine& line, Session& session) {
  if (line.verb == "ops") return list_operators(line);
  if (line.verb == "explain") return explain_diagnostic(line);
  if (line.verb == "cache") return use_cache(line);
  if (line.verb == "kernels") return list_kernels(line);
  if (line.verb == "machines") return list_machines(line);
  if (line.verb == "profile" && line.has("transport")) return profile_transport(line);
  if (line.verb == "profile") return profile_host(line);
  if (line.verb == "doctor") return examine_machine(line);
  if (line.verb == "tune") return tune_schedule(line, session);
  if (line.verb == "validate") return validate_predictions(line, session);
  if (line.verb == "show") return show_text(line, session);
  if (line.verb == "schedules") return print_schedules(line, session);
  if (line.verb == "lower") return lower_schedule(line, session);
  if (line.verb == "verify") return verify_plan(line, session);
  if (line.verb == "run") return run_plan(line, session);
  if (line.verb == "simulate") return simulate_plan(line, session);
  if (line.verb == "bench") return run_bench(line, session);
  if (line.verb == "fabric") return compare_policies(line);
  if (line.verb == "taxes") return list_taxes_of(line, session);
  HP_CHECK(false, "verb `" + line.verb + "` has no function");
}

int report(const Diag& diag) {
  print_error(print_diag(diag) + "\n");
  return exit_status_of(diag);
}

// Writes the report of a broken invariant into the current folder, or into the folder for temporary
// files if that is not possible, and prints its path.
int report_bug(const std::string& what, int count, const char* const* words,
               const Session& session) {
  std::string text = "// " + what + "\n// harpe " HARPE_VERSION ", run as:";
  for (int i = 0; i < count; ++i) text += std::string(" ") + words[i];
  text += "\n" + session.reproduction();
  const std::string name = "harpe-bug-" + hash_text(text).substr(0, 8) + ".txt";
  std::string path = name;
  if (!write_text(path, text).ok()) {
    std::error_code error;
    path = (std::filesystem::temp_directory_path(error) / name).string();
    if (!write_text(path, text).ok()) path.clear();
  }
  print_error("bug in harpe: " + what + "\n" +
              (path.empty() ? text : "  its reproduction is in `" + path + "`\n"));
  return kBug;
}

}  // namespace

int run_command(int count, const char* const* words) {
  const Checked<CommandLine> line = parse_command_line(count, words);
  if (!line.ok()) return report(line.error());
  if (line->answer) {
    const Checked<Ok> shown = print_out(*line->answer);
    return shown.ok() ? kDone : report(shown.error());
  }
  Session session(line->has("paranoid"), [](const Diag& diag) { print_warning(diag); });
  try {
    const Checked<int> status = dispatch(*line, session);
    return status.ok() ? *status : report(status.error());
  } catch (const InternalError& error) {
    return report_bug(error.what(), count, words, session);
  } catch (const ThreadRefused& refused) {
    return report(refused.diag());
  } catch (const std::bad_alloc&) {
    print_error("error: out of memory\n");
    return kFault;
  }
}

}  // namespace harpe::cli
