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

// An exchange of Python's: an object with `rank`, `ranks` and `all_gather(bytes) -> list[bytes]`.
class GivenExchange final : public Exchange {
 public:
  // Raises what its attributes do.
  explicit GivenExchange(nb::object given);
  ~GivenExchange() override;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int ranks() const override { return ranks_; }
  // With the interpreter's lock. What Python raises is kept.
  [[nodiscard]] Checked<std::vector<Bytes>> all_gather(const Bytes& own) override;

  // What it raised; then forgets it.
  [[nodiscard]] nb::object take_raised();

 private:
  [[nodiscard]] std::vector<Bytes> ask(const Bytes& own) const;

  nb::object given_;
  nb::object raised_;
  int rank_;
  int ranks_;
};

// Looks for signals, such as an interrupt, while a launch waits for other ranks.
class SignalWatch {
 public:
  SignalWatch() = default;
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch();

  // From any thread, without the interpreter's lock, which it takes some twenty times a second.
  // False: a handler has raised, and that is kept.
  [[nodiscard]] bool goes_on();
  // What was raised; then forgets it.
  [[nodiscard]] nb::object take_raised() { return std::exchange(raised_, nb::object()); }

 private:
  std::chrono::steady_clock::time_point looked_ = {};
  nb::object raised_;
};

// Python's function, or none of None; called and dropped on any thread. What it raises is printed.
std::function<void(std::string_view)> hold(nb::object function);

// One rank of a group, and the lock that lets threads of Python call it one at a time. Its
// collective calls may call back into Python, which may call it again.
struct Rank {
  Group group;
  std::shared_ptr<GivenExchange> given;  // where the exchange is Python's
  std::shared_ptr<SignalWatch> signals;
  std::optional<int> gpu = {};  // that it is on
  std::recursive_mutex mutex = {};
};

// The lock, for several calls that belong together; taken without the interpreter's lock, as all
// take it.
class Held {
 public:
  explicit Held(Rank& rank) : lock_(rank.mutex, std::defer_lock) {
    const nb::gil_scoped_release released;
    lock_.lock();
  }

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

// An error as Python sees it: behind it what Python raised meanwhile (null: nothing), or that alone
// where it ends the program (KeyboardInterrupt).
[[noreturn]] void raise(const Error& error, const nb::object& raised);
[[nodiscard]] nb::object take_raised(GivenExchange* given, SignalWatch& signals);

// body() is a Checked<T> about the rank and touches no Python object.
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
