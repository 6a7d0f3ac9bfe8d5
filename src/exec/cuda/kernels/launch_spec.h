#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exec/cuda/device/wait_args.h"
#include "exec/cuda/kernels/fixed_words.h"
#include "exec/cuda/kernels/strided_array.h"
#include "exec/cuda/kernels/touched.h"
#include "support/diag.h"

namespace harpe::device {
struct Bounds;
}

namespace harpe::cuda {

class KernelBinding;
class LaunchSpec;

// A partial state in f32 that every reader rounds. Kernels store it in 16 bits, from the start of
// its memory.
struct Partial16 {
  AddressRange memory;
  std::optional<device::Element> element;

  // The 16-bit address of the f32 element at `address`; none for other memory.
  [[nodiscard]] std::optional<DeviceAddress> find(DeviceAddress address) const {
    if (!memory.holds(address)) return std::nullopt;
    return memory.begin + (address - memory.begin) / 2;
  }
};

// The most launches that become one.
inline constexpr std::size_t kMostJoined = 512;

// One launch of a kernel, the copy engine or a library. Code outside the kernel's own folder uses
// only this interface.
class KernelLaunch {
 public:
  virtual ~KernelLaunch() = default;
  [[nodiscard]] virtual std::unique_ptr<KernelLaunch> copy() const = 0;

  // The kernel as launch plans name it: "gemm_sm90".
  [[nodiscard]] virtual std::string_view name() const = 0;
  // Whether it can run on `multiprocessors` SMs. Libraries check their own launches. Errors: those
  // of its family's `check`.
  [[nodiscard]] virtual Checked<Ok> check(int /*multiprocessors*/) const { return Ok{}; }
  // The variant for `multiprocessors` SMs; "" if there is no choice. Requires: check is ok.
  [[nodiscard]] virtual std::string choose(int /*multiprocessors*/) const { return ""; }
  // Whether it has the variant that a launch plan names. Requires: check is ok.
  [[nodiscard]] virtual bool has_variant(std::string_view /*variant*/) const { return true; }

  // Its operands; empty for kernels whose operands launch plans do not state.
  [[nodiscard]] virtual KernelArrays arrays() const { return {}; }
  // The same, or, for kernels whose operands are stated only beside other kernels of their task,
  // the part of the task that the others leave to this kernel.
  [[nodiscard]] virtual KernelArrays arrays_beside_others() const { return arrays(); }
  // Whether a launch plan's kernel of this name consists of such launches.
  [[nodiscard]] virtual bool makes(std::string_view kernel) const { return kernel == name(); }
  // Combines the kernels that the launch's tasks run alone into one launch of this kind. Errors:
  // G092. Requires: arrays has panels.
  [[nodiscard]] virtual Checked<LaunchSpec> bind(const KernelBinding& binding) const;
  // Whether `bind` applies the maps of the panels.
  [[nodiscard]] virtual bool takes_maps() const { return false; }
  // Whether passes may join such launches; with `takes_copies`, into one that also copies for other
  // ranks.
  [[nodiscard]] virtual bool can_be_joined(bool /*takes_copies*/) const { return true; }
  // The context of its waits if the kernel waits inside; else null.
  [[nodiscard]] virtual device::WaitContext* inner_wait() { return nullptr; }
  // What it does in place of Entry and Exit; null if it cannot do so.
  [[nodiscard]] virtual device::Bounds* bounds() { return nullptr; }
  // Adds its addresses that are not arguments.
  virtual void add_fixed(FixedWords& /*fixed*/) const {}
  // Makes it store the state in 16 bits; false if it does not make the state, or carries it on.
  virtual bool store_in_16_bits(const Partial16& /*state*/) { return false; }

  // Whether the kernel reads at run time how many of its rows are in use.
  [[nodiscard]] virtual bool counts_rows() const { return false; }
  // Whether `other` differs only in the addresses of its operands, so that both may be one launch.
  [[nodiscard]] virtual bool is_like(const KernelLaunch& /*other*/) const { return false; }
  // Requires, here and below: it is like another launch, or like all of `run`, whose first it is.
  [[nodiscard]] virtual Touched touched() const { return {}; }
  // None if no kernel can run them as one.
  [[nodiscard]] virtual std::optional<LaunchSpec> join(std::span<const LaunchSpec> run,
                                                       int multiprocessors) const;
};

// A launch described by a struct of its folder, which has `make_launch(Spec)` beside it.
template <class Spec>
class LaunchOf : public KernelLaunch {
 public:
  explicit LaunchOf(Spec described) : spec(std::move(described)) {}
  Spec spec;
};

// The struct that describes a launch; null for other kinds.
template <class Spec>
[[nodiscard]] const Spec* find_spec(const KernelLaunch& launch) {
  const auto* const found = dynamic_cast<const LaunchOf<Spec>*>(&launch);
  return found == nullptr ? nullptr : &found->spec;
}

template <class Spec>
concept DescribesLaunch = requires(Spec spec) {
  { make_launch(std::move(spec)) } -> std::same_as<std::unique_ptr<KernelLaunch>>;
};

// A launch as a value.
class LaunchSpec {
 public:
  template <DescribesLaunch Spec>
  LaunchSpec(Spec spec) : launch_(make_launch(std::move(spec))) {}
  LaunchSpec(const LaunchSpec& other) : launch_(other.launch_->copy()) {}
  LaunchSpec(LaunchSpec&&) noexcept = default;
  LaunchSpec& operator=(const LaunchSpec& other) { return *this = LaunchSpec(other); }
  LaunchSpec& operator=(LaunchSpec&&) noexcept = default;
  ~LaunchSpec() = default;

  KernelLaunch* operator->() { return launch_.get(); }
  const KernelLaunch* operator->() const { return launch_.get(); }
  const KernelLaunch& operator*() const { return *launch_; }

  // The struct that describes it; null for other kinds.
  template <class Spec>
  [[nodiscard]] Spec* find() {
    auto* const launch = dynamic_cast<LaunchOf<Spec>*>(launch_.get());
    return launch == nullptr ? nullptr : &launch->spec;
  }
  template <class Spec>
  [[nodiscard]] const Spec* find() const {
    return find_spec<Spec>(*launch_);
  }
  template <class Spec>
  [[nodiscard]] bool is() const {
    return find<Spec>() != nullptr;
  }
  // Requires: it is of that kind.
  template <class Spec>
  [[nodiscard]] const Spec& get() const {
    return dynamic_cast<const LaunchOf<Spec>&>(*launch_).spec;
  }

 private:
  std::unique_ptr<KernelLaunch> launch_;
};

using LaunchSpecs = std::vector<LaunchSpec>;

}  // namespace harpe::cuda
