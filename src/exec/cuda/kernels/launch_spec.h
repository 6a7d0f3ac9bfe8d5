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

// A partial state that everybody rounds: kernels store it in 16 bits from where its f32 begin.
struct Partial16 {
  AddressRange memory;
  std::optional<device::Element> element;

  // Where an element of f32 there comes to lie; none of other memory.
  [[nodiscard]] std::optional<DeviceAddress> find(DeviceAddress address) const {
    if (!memory.holds(address)) return std::nullopt;
    return memory.begin + (address - memory.begin) / 2;
  }
};

// At most so many launches become one.
inline constexpr std::size_t kMostJoined = 512;

// What one launch does, by one kernel, the copy engine or a library. All but the kernel's own
// folder asks it through this alone.
class KernelLaunch {
 public:
  virtual ~KernelLaunch() = default;
  [[nodiscard]] virtual std::unique_ptr<KernelLaunch> copy() const = 0;

  // As launch plans name it: "gemm_sm90".
  [[nodiscard]] virtual std::string_view name() const = 0;
  // Whether it can run on so many multiprocessors. What a library runs is checked by the library.
  // Errors: those of `check` of its kind.
  [[nodiscard]] virtual Checked<Ok> check(int /*multiprocessors*/) const { return Ok{}; }
  // The variant for so many multiprocessors; "" where there is no choice. Requires: check is ok.
  [[nodiscard]] virtual std::string choose(int /*multiprocessors*/) const { return ""; }
  // Whether there is the variant that a launch plan names. Requires: as above.
  [[nodiscard]] virtual bool has_variant(std::string_view /*variant*/) const { return true; }

  // Of a kernel whose operands launch plans state.
  [[nodiscard]] virtual KernelArrays arrays() const { return {}; }
  // The same; and of a kernel whose operands they state only where others of its task do so: what
  // those leave to it.
  [[nodiscard]] virtual KernelArrays arrays_beside_others() const { return arrays(); }
  // Whether a launch plan's kernel of that name is made up of such launches.
  [[nodiscard]] virtual bool makes(std::string_view kernel) const { return kernel == name(); }
  // One of its kind, made up of what the launch's tasks run alone. Errors: G092. Requires: arrays
  // has panels.
  [[nodiscard]] virtual Checked<LaunchSpec> bind(const KernelBinding& binding) const;
  // Whether binding it heeds the maps of its panels.
  [[nodiscard]] virtual bool takes_maps() const { return false; }
  // Whether passes may make such a launch, which with `takes_copies` copies for other ranks
  // too.
  [[nodiscard]] virtual bool can_be_joined(bool /*takes_copies*/) const { return true; }
  // What it waits with, where it waits inside; else null.
  [[nodiscard]] virtual device::WaitContext* inner_wait() { return nullptr; }
  // What it does at both ends of an execution; null where it can do nothing there.
  [[nodiscard]] virtual device::Bounds* bounds() { return nullptr; }
  // Its addresses that are not arguments.
  virtual void add_fixed(FixedWords& /*fixed*/) const {}
  // Stores a state in 16 bits; false where it does not make it, or goes on with it.
  virtual bool store_in_16_bits(const Partial16& /*state*/) { return false; }

  // Whether it learns as it runs how many of its rows are used.
  [[nodiscard]] virtual bool counts_rows() const { return false; }
  // Whether another differs in nothing but where its operands are, so that both may be one launch.
  [[nodiscard]] virtual bool is_like(const KernelLaunch& /*other*/) const { return false; }
  // Requires, here and below: it is like one, or like all of `run`, which it is the first of.
  [[nodiscard]] virtual Touched touched() const { return {}; }
  // None where no kernel has them so.
  [[nodiscard]] virtual std::optional<LaunchSpec> join(std::span<const LaunchSpec> run,
                                                       int multiprocessors) const;
};

// A launch that is described by a struct: its folder's, with `make_launch(Spec)` beside it.
template <class Spec>
class LaunchOf : public KernelLaunch {
 public:
  explicit LaunchOf(Spec described) : spec(std::move(described)) {}
  Spec spec;
};

// What describes a launch; null of other kinds.
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

  // What describes it; null of other kinds.
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
