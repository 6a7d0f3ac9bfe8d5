#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace harpe {

// How a signal is ordered after its puts, strictest first among the fences that the signals of one
// put may mix (docs/fabric.md). Schedules, plans and transports use the same words.
enum class Fence : std::uint8_t {
  PerPut,          // the proxy waits for quiet after each put, then raises its signal
  PerDestination,  // the proxy waits for quiet once per batch: puts in a row to one rank
  NicOrdered,      // the NIC orders each signal behind earlier traffic to the same rank
  Batched,         // the same, with one ordering point per batch; its signals follow
  OneQuiet,        // the proxy waits for quiet once for puts in a row to any ranks
  Immediate,       // the signal is the put's immediate data, which the receiver's proxy counts
};

[[nodiscard]] std::string_view print(Fence fence);  // "put"
[[nodiscard]] std::optional<Fence> parse_fence(std::string_view text);

}  // namespace harpe
