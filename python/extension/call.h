#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "extension/records.h"

// One call of the library: releases the interpreter's lock and raises errors as exceptions.
namespace harpe::python {

[[noreturn]] void raise(const Error& error);

template <class T>
T take(Checked<T> checked) {
  if (!checked.ok()) raise(checked.error());
  return std::move(checked).value();
}

// body() returns a Checked<T> and uses no Python object.
template <class Body>
auto call(const Body& body) {
  auto made = [&] {
    const nb::gil_scoped_release released;
    return body();
  }();
  return take(std::move(made));
}

// Options of a long call.
struct CallOptions {
  std::optional<std::string> cache;
  std::optional<std::int64_t> patience_s;
  nb::object progress;  // called with (stage, done, of), returns False to cancel; or None
};

// Serves the library's callbacks during a call: checks for signals, calls Python's progress, keeps
// warnings. An exception in Python ends the work, and finish() raises it again.
class Callbacks {
 public:
  explicit Callbacks(const CallOptions& given) : given_(&given) {}
  Callbacks(const Callbacks&) = delete;
  Callbacks& operator=(const Callbacks&) = delete;

  [[nodiscard]] Options options();
  void finish();

 private:
  [[nodiscard]] bool report(std::string_view stage, std::int64_t done, std::int64_t of);

  const CallOptions* given_;
  std::exception_ptr raised_;
  std::vector<std::string> warnings_;
};

// body(options) returns a Checked<T> and uses no Python object.
template <class Body>
auto call(const CallOptions& given, const Body& body) {
  Callbacks callbacks(given);
  auto made = [&] {
    const Options options = callbacks.options();
    const nb::gil_scoped_release released;
    return body(options);
  }();
  callbacks.finish();
  return take(std::move(made));
}

}  // namespace harpe::python
