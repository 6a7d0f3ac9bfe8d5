#pragma once

#include <deque>
#include <functional>
#include <random>
#include <vector>

#include "transport/provider.h"

namespace harpe::transport::test {

// One delivery to a rank, observed at once: its data has arrived, later data has not.
struct Placed {
  int peer = 0;
  std::optional<Write> put{};
  std::optional<SignalUpdate> word{};
};

// A provider that keeps exactly the guarantees in `honoured`: every other reordering happens at
// random. It has one sender and holds all ranks' memory in this process.
class AdversarialProvider final : public Provider {
 public:
  AdversarialProvider(Guarantees honoured, std::uint64_t seed,
                      std::function<void(const Placed&)> observe)
      : honoured_(honoured), draw_(seed), observe_(std::move(observe)) {}

  [[nodiscard]] std::string name() const override { return "adversarial"; }
  [[nodiscard]] const Guarantees& given() const override { return honoured_; }
  [[nodiscard]] Checked<Contact> expose(std::span<const Region> /*regions*/) override {
    return Contact{};
  }
  [[nodiscard]] Checked<Ok> connect(std::span<const Contact> /*contacts*/) override { return Ok{}; }
  [[nodiscard]] bool carries(const SignalUpdate& /*update*/) const override {
    return honoured_.immediate;
  }
  [[nodiscard]] Outcome<Posted> post(const Write& write) override;
  [[nodiscard]] Outcome<Posted> post(const SignalWrite& signal) override;
  [[nodiscard]] Outcome<bool> turn(std::vector<Token>& completed) override;

  // Drops everything from here on.
  void cut() { is_cut_ = true; }

 private:
  struct Pending {
    Placed what;
    bool fence = false;
    Token token = 0;
  };
  [[nodiscard]] Outcome<Posted> accept(Pending pending);
  [[nodiscard]] bool may_go(std::size_t at) const;

  Guarantees honoured_;
  std::mt19937_64 draw_;
  std::function<void(const Placed&)> observe_;
  std::deque<Pending> pending_;
  std::vector<Token> left_;  // without remote completion: completed on leaving
  bool is_cut_ = false;
};

}  // namespace harpe::transport::test
