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

// Between what programs call (harpe::v1) and everything else (harpe).
namespace harpe::library {

[[nodiscard]] v1::Error to_error(const Diag& diag);
// `title`: of the plan that was executed.
[[nodiscard]] v1::Error to_error(const FaultReport& report, const std::string& title);
// Of the exception that is being handled. `reproduction`: what had been made until then.
[[nodiscard]] v1::Error to_error_of_exception(const std::string& reproduction);

// An argument that is a time limit, which clocks can add. Errors: I311.
[[nodiscard]] harpe::Checked<Ok> check_time(std::string_view argument,
                                            std::chrono::milliseconds time);

// What one call has of its options: a session, and whether the caller has given the work up.
class Call {
 public:
  explicit Call(const v1::Options& options);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  [[nodiscard]] Session& session() { return session_; }
  [[nodiscard]] const v1::Options& options() const { return options_; }
  // Tells the caller, who may give up.
  void report(std::string_view stage, std::int64_t done, std::int64_t of);
  // The same where a stage begins. Errors: I505 the caller has given up.
  [[nodiscard]] harpe::Checked<Ok> begin(std::string_view stage);
  // Over once the caller gives up, which is asked at every look.
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

// The same of a call that has no options and must cost little: body() is a v1::Checked.
template <class Body>
[[nodiscard]] auto guard(const Body& body) -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    return to_error_of_exception("");
  }
}

}  // namespace harpe::library
