#include "library/boundary.h"

#include <exception>
#include <new>
#include <sstream>

#include "support/check.h"
#include "support/threads.h"

namespace harpe::library {
namespace {

// The error is a fault, not the question's: a process exited or never connected, or the system
// refused a resource.
bool is_fault(DiagCode code) { return code == DiagCode::N010 || code == DiagCode::X018; }

Warn warn_by(const v1::Options& options) {
  if (!options.warn) return [](const Diag&) {};
  return [warn = options.warn](const Diag& diag) { warn(render(diag, "warning")); };
}

v1::Error make_bug(const std::string& what, const std::string& reproduction) {
  return {.kind = v1::ErrorKind::Bug,
          .code = "",
          .message = what,
          .notes = {},
          .remedy = "report it, with `reproduction`",
          .text = "bug in harpe: " + what,
          .reproduction = "// " + what + "\n" + reproduction};
}

}  // namespace

v1::Error to_error(const Diag& diag) {
  v1::Error error{.kind = is_fault(diag.code) ? v1::ErrorKind::Fault : v1::ErrorKind::Refused,
                  .code = std::string(info(diag.code).name),
                  .message = render_message(diag),
                  .notes = diag.notes,
                  .remedy = render_remedy(diag),
                  .text = render(diag)};
  if (diag.where) {
    std::string place = "in line " + std::to_string(diag.where->line) + ", column " +
                        std::to_string(diag.where->column);
    if (!diag.where->file.empty()) place += " of `" + diag.where->file + "`";
    error.notes.insert(error.notes.begin(), std::move(place));
  }
  return error;
}

v1::Error to_error(const FaultReport& report, const std::string& title) {
  const std::string lines = render(report);
  v1::Error error{.kind = v1::ErrorKind::Fault,
                  .code = "",
                  .message = "",
                  .notes = {},
                  .remedy = "",
                  .text = "fault: " + title + "\n" + lines};
  std::istringstream text(lines);
  std::getline(text, error.message);
  for (std::string line; std::getline(text, line);) error.notes.push_back(line);
  return error;
}

v1::Error to_error_of_exception(const std::string& reproduction) {
  try {
    throw;
  } catch (const ThreadRefused& refused) {
    return to_error(refused.diag());
  } catch (const std::bad_alloc&) {
    const std::string what = "out of memory";
    return {.kind = v1::ErrorKind::Fault,
            .code = "",
            .message = what,
            .notes = {},
            .remedy = "",
            .text = "error: " + what};
  } catch (const std::exception& error) {
    return make_bug(error.what(), reproduction);
  } catch (...) {
    return make_bug("an exception of no known type", reproduction);
  }
}

harpe::Checked<Ok> check_time(std::string_view argument, std::chrono::milliseconds time) {
  constexpr std::chrono::hours kMost{24 * 365};
  if (time.count() >= 1 && time <= kMost) return Ok{};
  return make_diag(DiagCode::I311, {{"argument", argument},
                                    {"wanted", "from 1 ms to 365 days"},
                                    {"found", std::to_string(time.count()) + " ms"}});
}

Call::Call(const v1::Options& options) : options_(options), session_(false, warn_by(options)) {}

void Call::report(std::string_view stage, std::int64_t done, std::int64_t of) {
  if (options_.progress && !options_.progress(stage, done, of)) is_given_up_ = true;
}

harpe::Checked<Ok> Call::begin(std::string_view stage) {
  report(stage, 0, 0);
  if (!is_given_up_) return Ok{};
  return make_diag(DiagCode::I505, {{"work", stage}});
}

TimeLimit Call::limit(std::string_view stage) {
  TimeLimit limit;
  if (options_.progress) {
    limit.interrupted = [this, stage = std::string(stage)] {
      report(stage, 0, 0);
      return is_given_up_.load();
    };
  }
  return limit;
}

}  // namespace harpe::library
