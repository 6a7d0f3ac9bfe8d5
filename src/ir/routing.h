#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/program.h"
#include "ir/tensor.h"
#include "support/diag.h"

namespace harpe {

// What a route's index says (commir.md 8): choice (t, k) takes expert index[t, k], and of every
// expert the slots 0, 1, 2, … in the order of t, then k. A negative expert is no choice at all.
struct Routing {
  static constexpr std::int64_t kNone = -1;

  std::int64_t choices = 0;                       // per token
  std::vector<std::vector<std::int64_t>> takers;  // per expert and slot: t * choices + k
  std::vector<std::int64_t> expert;               // per t * choices + k, or kNone
  std::vector<std::int64_t> slot;                 // of its expert, or kNone
};

// Requires: ground program; `index` is the route's index buffer [T, Kc], of integers, or some of
// its rows, such as a rank has. Errors: P206 an expert that does not exist, P207 more choices of
// one than its slots.
[[nodiscard]] Checked<Routing> resolve_route(const Program& program, const Route& route,
                                             const HostTensor& index);

// A route that relates (expert, slot) to (token, choice), where slots are a ragged axis of the
// experts. Others can be scheduled and verified, but not run.
[[nodiscard]] bool is_expert_route(const Program& program, const Route& route);

// The axis C of the buffer that is `dyn … of E`, or null. A buffer has one at most (P051).
[[nodiscard]] const Axis* find_ragged_axis(const Program& program, const Buffer& buffer);

}  // namespace harpe
