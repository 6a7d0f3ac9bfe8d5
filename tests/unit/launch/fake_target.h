#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launch/target.h"
#include "plan/ref_layouts.h"

namespace harpe::launch::passing {

// The abilities of an invented GPU's kernels. GEMMs and attention of q, k and v have one panel,
// pointwise kernels none. Copies without `sm` use the copy engine.
struct Abilities {
  bool shares_sms = false;
  std::int32_t copy_blocks = 6;
  // Changes the kernel of a task by itself.
  std::function<void(TaskId task, Kernel& kernel)> edit = [](TaskId, Kernel&) {};
  // True if a kernel can do what a pass proposes for the launch.
  std::function<bool(const Launch& launch, const Kernel& kernel)> can =
      [](const Launch&, const Kernel&) { return true; };
  std::function<bool(TaskId task)> counts_rows = [](TaskId) { return false; };
  bool moves_by_threads = false;
  std::int64_t most_in_data = 1 << 20;
  bool bounds_epochs = false;
  std::size_t most_bounds = 8;
};

class FakeOffers : public Offers {
 public:
  // Requires: the arguments outlive this object.
  FakeOffers(const Plan& plan, const Blocks& blocks, const Abilities& can)
      : plan_(plan), layouts_(plan, blocks), can_(can) {}

  Checked<std::span<const Kernel>> kernels_of(TaskId id) override;
  Checked<std::vector<Kernel>> landing_of(TaskId /*put*/) override { return std::vector<Kernel>(); }
  bool counts_rows(TaskId id) override { return can_.counts_rows(id); }
  std::vector<Kernel> batched(const std::vector<TaskId>& tasks) override;
  std::optional<std::string> choose(const Launch& launch, const Kernel& kernel) override;
  bool moves_by_threads(const Kernel& /*kernel*/, DType /*dtype*/) override {
    return can_.moves_by_threads;
  }
  bool bounds_epochs(const Kernel& /*kernel*/) override { return can_.bounds_epochs; }

 private:
  [[nodiscard]] bool is_pointwise(const Task& task) const;
  [[nodiscard]] std::vector<Place> places_of(const std::vector<Ref>& refs);

  const Plan& plan_;
  RefLayouts layouts_;
  const Abilities& can_;
  Kernel kernel_;  // of the last requested task
};

inline constexpr std::int32_t kSms = 64;
inline constexpr std::int32_t kSmsForSignals = 1;
inline constexpr std::int32_t kSmsForKernels = 8;
inline constexpr std::int64_t kChunkBytes = 1024;

[[nodiscard]] Target::Facts facts_of(const Abilities& can);

class FakeTarget : public Target {
 public:
  explicit FakeTarget(Abilities can) : can_(std::move(can)), facts_(facts_of(can_)) {}
  [[nodiscard]] const Facts& facts() const override { return facts_; }
  [[nodiscard]] Checked<Ok> check(const Plan& /*plan*/) const override { return Ok{}; }
  [[nodiscard]] std::unique_ptr<Offers> open(
      const Plan& plan, const Blocks& blocks, const Exchanges& /*exchanges*/,
      const std::vector<AllocId>& /*partials16*/) const override {
    return std::make_unique<FakeOffers>(plan, blocks, can_);
  }

 private:
  Abilities can_;
  Facts facts_;
};

}  // namespace harpe::launch::passing
