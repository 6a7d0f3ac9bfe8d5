#pragma once

#include <chrono>
#include <deque>
#include <memory>

#include "transport/provider.h"

namespace harpe::transport::test {

// A planted fault: the provider sends data some time after its signal, and reports completion
// before it sends. A check of the arrival order must detect this.
class HastyProvider final : public Provider {
 public:
  HastyProvider(std::unique_ptr<Provider> honest, std::chrono::microseconds late)
      : honest_(std::move(honest)), late_(late) {}

  [[nodiscard]] std::string name() const override { return honest_->name(); }
  [[nodiscard]] const Guarantees& given() const override { return honest_->given(); }
  [[nodiscard]] Checked<Contact> expose(std::span<const Region> regions) override {
    return honest_->expose(regions);
  }
  [[nodiscard]] Checked<Ok> connect(std::span<const Contact> contacts) override {
    return honest_->connect(contacts);
  }
  [[nodiscard]] bool carries(const SignalUpdate& update) const override {
    return honest_->carries(update);
  }
  [[nodiscard]] Outcome<Posted> post(const Write& write) override;
  [[nodiscard]] Outcome<Posted> post(const SignalWrite& signal) override {
    return honest_->post(signal);
  }
  [[nodiscard]] Outcome<bool> turn(std::vector<Token>& completed) override;

 private:
  struct Late {
    std::chrono::steady_clock::time_point due;
    Write write;
  };
  static constexpr Token kOwn = ~Token{0};  // of writes already reported as complete

  std::unique_ptr<Provider> honest_;
  std::chrono::microseconds late_;
  std::deque<Late> late_writes_;
  std::vector<Token> done_;
};

}  // namespace harpe::transport::test
