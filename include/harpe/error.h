#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "harpe/api.h"

namespace harpe {
HARPE_INLINE namespace v1 {
enum class ErrorKind : std::uint8_t {
  Refused,  // the call rejected the question, a text or an argument; nothing was executed
  Fault,    // a failure at run time: a wait timed out, or memory or threads ran out
  Bug,      // an invariant of Harpe does not hold
};

// Why a call returned no value.
struct Error {
  ErrorKind kind = ErrorKind::Refused;
  std::string code;     // such as "F209", which explain() describes; "" for an error without a code
  std::string message;  // one sentence: what happened, with its numbers
  std::vector<std::string>
      notes;           // context: the step, parameter or text; for a fault, the other ranks
  std::string remedy;  // what to do about it; or ""
  std::string text;    // the whole error as the command line prints it, without its flags
  // For a bug: program, mesh, schedule and plan, as far as they were made. Attach it to a report.
  std::string reproduction = {};
};

// A value, or the error that explains why there is none. No call of the library throws. Only
// value() of an error and error() of a value throw std::logic_error.
template <class T>
class [[nodiscard]] Checked {
 public:
  Checked(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Checked(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  [[nodiscard]] const T& value() const& { return *require_value(); }
  [[nodiscard]] T& value() & { return *require_value(); }
  [[nodiscard]] T value() && { return std::move(*require_value()); }  // outlives this object
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  T operator*() && { return std::move(*this).value(); }
  const T* operator->() const { return require_value(); }
  T* operator->() { return require_value(); }

  [[nodiscard]] const Error& error() const& { return require_error(); }
  [[nodiscard]] Error error() && { return require_error(); }

 private:
  const Error& require_error() const {
    if (ok()) throw std::logic_error("error() of a harpe::Checked that has a value");
    return *std::get_if<1>(&state_);
  }
  const T* require_value() const {
    if (!ok()) throw std::logic_error(std::get_if<1>(&state_)->text);
    return std::get_if<0>(&state_);
  }
  T* require_value() { return const_cast<T*>(std::as_const(*this).require_value()); }

  std::variant<T, Error> state_;
};

// What the registry of diagnostics holds about a code.
struct Explanation {
  std::string code;     // "S102"
  std::string verdict;  // "illegal", "unproven", "unsupported"
  std::string message;  // with {placeholders}
  std::string meaning;
  std::string remedy;  // or ""
};
// Accepts upper and lower case. Errors: U115 no such code.
[[nodiscard]] HARPE_API Checked<Explanation> explain(const std::string& code);

}  // namespace v1
}  // namespace harpe
