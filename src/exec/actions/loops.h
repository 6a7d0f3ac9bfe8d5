#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace harpe::actions {

// A loop around a kernel, with each operand's step per iteration in bytes.
template <std::size_t Operands>
struct Loop {
  std::int64_t length = 1;
  std::array<std::int64_t, Operands> bytes{};
  bool reduces = false;  // its iterations contribute to the same results
};

// Calls body(offsets, again) for every iteration of the nest, outermost loop first. `again` is true
// if an earlier iteration contributed to the same results.
template <std::size_t Operands, class Body>
void for_each_turn(std::span<const Loop<Operands>> loops, const Body& body,
                   std::array<std::int64_t, Operands> offsets = {}, bool again = false) {
  if (loops.empty()) {
    body(offsets, again);
    return;
  }
  const Loop<Operands>& loop = loops.front();
  for (std::int64_t turn = 0; turn < loop.length; ++turn) {
    for_each_turn(loops.subspan(1), body, offsets, again || (loop.reduces && turn > 0));
    for (std::size_t i = 0; i < Operands; ++i) offsets[i] += loop.bytes[i];
  }
}

}  // namespace harpe::actions
