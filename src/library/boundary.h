#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "compile/session.h"
#include "exec/fault.h"
#include "harpe/error.h"
#include "harpe/question.h"
#include "support/diag.h"
#include "support/time_limit.h"

// The boundary between what programs call (harpe::v1) and everything else (harpe).
namespace harpe::library {

[[nodiscard]] v1::Error to_error(const Diag& diag);
// `title` names the plan that was executed.
[[nodiscard]] v1::Error to_error(const FaultReport& report, const std::string& title);
// The error for the exception being handled. `reproduction`: what the call had made so far.
[[nodiscard]] v1::Error to_error_of_exception(const std::string& reproduction);

// Checks a time limit that clocks can add without overflow. Errors: I311.
[[nodiscard]] harpe::Checked<Ok> check_time(std::string_view argument,
                                            std::chrono::milliseconds time);

// The state of one call: its options, its session, and whether the caller has cancelled it.
class Call {
 public:
  explicit Call(const v1::Options& options);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  [[nodiscard]] Session& session() { return session_; }
  [[nodiscard]] const v1::Options& options() const { return options_; }
  // Calls the caller's `progress`, which may cancel the call.
  void report(std::string_view stage, std::int64_t done, std::int64_t of);
  // Reports the beginning of a stage. Errors: I505 the caller has cancelled the call.
  [[nodiscard]] harpe::Checked<Ok> begin(std::string_view stage);
  // A limit that reports progress at every check and expires once the caller cancels.
  [[nodiscard]] TimeLimit limit(std::string_view stage);
  [[nodiscard]] bool is_given_up() const { return is_given_up_; }

 private:
  v1::Options options_;
  Session session_;
  std::atomic<bool> is_given_up_{false};  // also read by threads of a search
};

// The body of every public function: body(call) is a harpe::Checked<T>. Nothing is thrown.
template <class T, class Body>
[[nodiscard]] v1::Checked<T> enter(const v1::Options& options, const Body& body) {
  std::optional<Call> call;
  try {
    call.emplace(options);
    harpe::Checked<T> made = body(*call);
    if (made.ok()) return std::move(made).value();
    return to_error(made.error());
  } catch (...) {
    return to_error_of_exception(call ? call->session().reproduction() : "");
  }
}

// The same for a call that has no options and must be cheap: body() returns a v1::Checked.
template <class Body>
[[nodiscard]] auto guard(const Body& body) -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    return to_error_of_exception("");
  }
}

}  // namespace harpe::library
