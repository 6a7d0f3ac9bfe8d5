#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "extension/call.h"

namespace harpe::python {

// A Python exchange: an object with `rank`, `ranks` and `all_gather(bytes) -> list[bytes]`.
class GivenExchange final : public Exchange {
 public:
  // Raises what the object's attributes raise.
  explicit GivenExchange(nb::object given);
  ~GivenExchange() override;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int ranks() const override { return ranks_; }
  // Takes the interpreter's lock. Keeps an exception of Python.
  [[nodiscard]] Checked<std::vector<Bytes>> all_gather(const Bytes& own) override;

  // Returns the kept exception and clears it.
  [[nodiscard]] nb::object take_raised();

 private:
  [[nodiscard]] std::vector<Bytes> ask(const Bytes& own) const;

  nb::object given_;
  nb::object raised_;
  int rank_;
  int ranks_;
};

// Checks for signals, such as an interrupt, while a launch waits for other ranks.
class SignalWatch {
 public:
  SignalWatch() = default;
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch();

  // Called from any thread without the interpreter's lock, which it takes about twenty times a
  // second. False: a handler has raised an exception, which is kept.
  [[nodiscard]] bool goes_on();
  // Returns the kept exception and clears it.
  [[nodiscard]] nb::object take_raised() { return std::exchange(raised_, nb::object()); }

 private:
  std::chrono::steady_clock::time_point looked_ = {};
  nb::object raised_;
};

// Wraps a Python function, or None; may be called and dropped on any thread. Its exceptions are
// printed.
std::function<void(std::string_view)> hold(nb::object function);

// One rank of a group, and the lock that serialises calls from Python threads. Its collective calls
// may call into Python, which may call the rank again.
struct Rank {
  Group group;
  std::shared_ptr<GivenExchange> given;  // set if the exchange is a Python object
  std::shared_ptr<SignalWatch> signals;
  std::optional<int> gpu = {};  // the rank's GPU
  std::recursive_mutex mutex = {};
};

// Holds the lock over several calls. Takes it without the interpreter's lock, as all other holders
// do.
class Held {
 public:
  explicit Held(Rank& rank) : lock_(rank.mutex, std::defer_lock) {
    const nb::gil_scoped_release released;
    lock_.lock();
  }

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

// Raises an error. `raised`, a Python exception from during the call (or null), becomes its cause;
// if it ends the program (KeyboardInterrupt), it is raised instead.
[[noreturn]] void raise(const Error& error, const nb::object& raised);
[[nodiscard]] nb::object take_raised(GivenExchange* given, SignalWatch& signals);

// body() returns a Checked<T> about the rank and uses no Python object.
template <class Body>
auto call(Rank& rank, const Body& body) {
  auto made = [&] {
    const nb::gil_scoped_release released;
    const std::scoped_lock lock(rank.mutex);
    return body();
  }();
  if (!made.ok()) raise(made.error(), take_raised(rank.given.get(), *rank.signals));
  return std::move(made).value();
}

}  // namespace harpe::python
