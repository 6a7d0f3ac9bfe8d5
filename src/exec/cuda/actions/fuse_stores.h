#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "exec/actions/action.h"
#include "exec/cuda/gemm.h"

namespace harpe::cuda {

// A transfer right behind a product, of sums that the product makes.
struct Transfer {
  std::span<const actions::Action> moves;
  std::optional<device::RaiseTarget> raise;
};

// A product whose panels go where they are wanted, and the product that is left: panels that stay.
struct StoringGemms {
  GemmSpec leaving;
  std::optional<GemmSpec> staying;
};

// Panels that one of the transfers moves, whole, are written where it takes them, rounded as it
// rounds, and raise its signal once they are there: the transfer needs no pass of its own. They are
// visited from the first behind those that stay, as ranks that do so store to different peers.
// None where a transfer moves anything but whole panels or rounds to another type than A's, or the
// kernel is a library's.
[[nodiscard]] std::optional<StoringGemms> fuse_stores(const GemmSpec& spec,
                                                      std::span<const Transfer> transfers);

// The flag of the signal that says what lies there has come; none where no one signal does.
using ReadyAt = std::function<std::optional<device::FlagWait>(DeviceAddress)>;

// Where `sums` add to each panel what others have contributed and round the total into its home,
// the product takes the contributions as addends and writes the total itself; each is waited for
// on its own. False, and nothing is changed, where they do anything else.
[[nodiscard]] bool sum_at_home(GemmSpec& spec, std::span<const actions::Action> sums,
                               const ReadyAt& ready);

}  // namespace harpe::cuda
