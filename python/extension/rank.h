#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

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

// Python's function, or none of None; called and dropped on any thread. What it raises is printed.
std::function<void(std::string_view)> hold(nb::object function);

// One rank of a group, and the lock that lets threads of Python call it one at a time. Its
// collective calls may call back into Python, which may call it again.
struct Rank {
  Group group;
  std::shared_ptr<GivenExchange> given;  // where the exchange is Python's
  bool is_on_gpu = false;
  std::recursive_mutex mutex = {};
};

// An error as Python sees it: behind it what an exchange of Python's raised, or that alone where it
// ends the program (KeyboardInterrupt).
[[noreturn]] void raise(const Error& error, GivenExchange* given);

// body() is a Checked<T> about the rank and touches no Python object.
template <class Body>
auto call(Rank& rank, const Body& body) {
  auto made = [&] {
    const nb::gil_scoped_release released;
    const std::scoped_lock lock(rank.mutex);
    return body();
  }();
  if (!made.ok()) raise(made.error(), rank.given.get());
  return std::move(made).value();
}

}  // namespace harpe::python
