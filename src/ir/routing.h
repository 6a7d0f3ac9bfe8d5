#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/program.h"
#include "ir/tensor.h"
#include "support/diag.h"

namespace harpe {

// The meaning of a route's index (commir.md 8): choice (t, k) takes expert index[t, k]. Each
// expert's slots 0, 1, 2, … are assigned in the order of t, then k. A negative expert means no
// choice.
struct Routing {
  static constexpr std::int64_t kNone = -1;

  std::int64_t choices = 0;                       // per token
  std::vector<std::vector<std::int64_t>> takers;  // per expert and slot: t * choices + k
  std::vector<std::int64_t> expert;               // per t * choices + k, or kNone
  std::vector<std::int64_t> slot;                 // of its expert, or kNone
};

// Requires: ground program; `index` is the route's index buffer [T, Kc], of integers, or some of
// its rows, such as a rank's. Errors: P206 an expert does not exist, P207 an expert has more
// choices than slots.
[[nodiscard]] Checked<Routing> resolve_route(const Program& program, const Route& route,
                                             const HostTensor& index);

// Whether the route relates (expert, slot) to (token, choice), with slots as a ragged axis of the
// experts. Other routes can be scheduled and verified, but not run.
[[nodiscard]] bool is_expert_route(const Program& program, const Route& route);

// The axis C of the buffer that is `dyn … of E`, or null. A buffer has at most one (P051).
[[nodiscard]] const Axis* find_ragged_axis(const Program& program, const Buffer& buffer);

}  // namespace harpe
