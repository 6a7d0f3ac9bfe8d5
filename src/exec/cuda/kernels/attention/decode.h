#pragma once

#include <array>
#include <optional>
#include <string>

#include "exec/cuda/kernels/attention/attention.h"
#include "exec/cuda/kernels/attention/device/decode_args.h"
#include "exec/cuda/kernels/attention/device/decode_config.h"

namespace harpe::cuda {

// Whether the kernel for few queries (device/decode.cuh) can run a spec: one panel and one chunk,
// without a mask by positions, waits or `carried`; heads of 64 or 128 and values of the same size;
// up to 8 queries over all heads that share keys; pages of a multiple of 8 keys.
[[nodiscard]] bool can_decode(const AttentionSpec& spec);

// The number of shares, at most `blocks`, that ends soonest by a model of reading keys and joining
// states. Requires: can_decode(spec).
[[nodiscard]] int choose_shares(const AttentionSpec& spec, int blocks);

// The cut as launch plans name it, and its parser; none for another text.
[[nodiscard]] std::string print_shares(int shares);
[[nodiscard]] std::optional<int> parse_shares(std::string_view variant);

// The count at which each fused store is complete: for each of its results, the (sequence, key
// head) pairs with heads of the result.
[[nodiscard]] std::vector<std::uint32_t> count_stores(const AttentionSpec& spec);

// Errors: G062 the number of shares, results or addends is out of range.
[[nodiscard]] Checked<Ok> check_shares(const AttentionSpec& spec, int blocks);

// The kernel variant for a spec. Requires: can_decode(spec).
[[nodiscard]] device::DecodeConfig decode_config(const AttentionSpec& spec);

// Everything that a launch needs, except what is made on a GPU: encoded maps and states.
struct DecodePlan {
  device::DecodeArgs args{};
  device::DecodeExchange exchange{};  // if the spec has results; without counters and memory
  std::array<TensorMapSpec, 3> maps;  // queries, keys, values
};

// Requires: can_decode(spec), and spec.shares > 0.
[[nodiscard]] DecodePlan plan_decode(const AttentionSpec& spec);

}  // namespace harpe::cuda
