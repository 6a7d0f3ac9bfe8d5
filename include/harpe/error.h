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
  Refused,  // the question, a text or an argument cannot be accepted; nothing was executed
  Fault,    // something failed at run time: a wait expired, memory or threads ran out
  Bug,      // an invariant of Harpe does not hold
};

// Why a call has no value.
struct Error {
  ErrorKind kind = ErrorKind::Refused;
  std::string code;     // "F209", which explain() describes; "" where none is registered
  std::string message;  // one sentence: what happened, with its numbers
  std::vector<std::string>
      notes;           // context: which step, parameter or text; of a fault, other ranks
  std::string remedy;  // what to do about it; or ""
  std::string text;    // all of it, as the command line prints it, but for its flags
  // Of a bug: program, mesh, schedule and plan as far as they were made; a report should have it.
  std::string reproduction = {};
};

// A value, or the error that says why there is none. No call of the library throws; value() and
// error() do where the other one is there, because then the caller has not looked.
template <class T>
class [[nodiscard]] Checked {
 public:
  Checked(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Checked(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  [[nodiscard]] const T& value() const& { return *require_value(); }
  [[nodiscard]] T& value() & { return *require_value(); }
  [[nodiscard]] T value() && { return std::move(*require_value()); }  // which outlives this
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

// What is registered about a code.
struct Explanation {
  std::string code;     // "S102"
  std::string verdict;  // "illegal", "unproven", "unsupported"
  std::string message;  // with {placeholders}
  std::string meaning;
  std::string remedy;  // or ""
};
// Upper or lower case. Errors: U115 no such code.
[[nodiscard]] HARPE_API Checked<Explanation> explain(const std::string& code);

}  // namespace v1
}  // namespace harpe
