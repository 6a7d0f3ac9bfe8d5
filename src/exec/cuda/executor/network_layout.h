#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "exec/cuda/target/signal_pages.h"
#include "plan/plan.h"

namespace harpe::cuda {

// Regions that every rank registers with its transport, in this order.
constexpr std::int32_t kInbox = 0;   // signals, then landing memory: others write here
constexpr std::int32_t kOutbox = 1;  // staging memory

// A put's images: in its rank's outbox, and in the receiver's inbox.
struct PutPlace {
  std::int64_t bytes = 0;
  std::int64_t source = 0;
  std::int64_t destination = 0;
  friend bool operator==(const PutPlace&, const PutPlace&) = default;
};

// Pinned host memory of a plan's puts. Puts share no memory: only the same put of the next
// execution reuses it, after this one has ended.
struct NetworkLayout {
  std::vector<std::int64_t> inbox_bytes;  // by rank, whole pages, like the next
  std::vector<std::int64_t> outbox_bytes;
  std::map<TaskId, PutPlace> puts;
};

// Offset of a signal of a rank's page in its inbox; one cache line each, so that polling one delays
// no other.
constexpr std::int64_t kInboxLine = 64;
[[nodiscard]] constexpr std::int64_t signal_offset(std::int32_t signal) {
  return signal * kInboxLine;
}

// `bytes`: of each put's image.
[[nodiscard]] NetworkLayout lay_out_network(const Plan& plan, const SignalPages& pages,
                                            const std::map<TaskId, std::int64_t>& bytes);

}  // namespace harpe::cuda
