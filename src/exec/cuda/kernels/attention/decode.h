#pragma once

#include <array>
#include <optional>
#include <string>

#include "exec/cuda/kernels/attention/attention.h"
#include "exec/cuda/kernels/attention/device/decode_args.h"
#include "exec/cuda/kernels/attention/device/decode_config.h"

namespace harpe::cuda {

// What the kernel for few queries of long keys asks of a spec (device/decode.cuh): one panel and
// one chunk, without a mask by positions, waits or `carried`; heads of 64 or 128, values of as
// many; up to 8 queries of all heads that share keys; pages of a multiple of 8 keys.
[[nodiscard]] bool can_decode(const AttentionSpec& spec);

// How many shares for so many blocks: as many as end soonest by a model of reading keys and joining
// states. Requires: can_decode(spec).
[[nodiscard]] int choose_shares(const AttentionSpec& spec, int blocks);

// As launch plans name the cut, and back; none of another text.
[[nodiscard]] std::string print_shares(int shares);
[[nodiscard]] std::optional<int> parse_shares(std::string_view variant);

// How far each of the spec's fused stores is counted: a pair of a sequence and a key head for each
// of its results that has heads of the pair.
[[nodiscard]] std::vector<std::uint32_t> count_stores(const AttentionSpec& spec);

// Errors: G062 so many shares, results or addends; otherwise those of check(AttentionSpec).
[[nodiscard]] Checked<Ok> check_shares(const AttentionSpec& spec, int blocks);

// The kernel for a spec. Requires: can_decode(spec).
[[nodiscard]] device::DecodeConfig decode_config(const AttentionSpec& spec);

// All that a launch needs but what is made on a GPU: maps of queries, keys, values; states.
struct DecodePlan {
  device::DecodeArgs args{};
  device::DecodeExchange exchange{};  // where the spec has results; without counters and memory
  std::array<TensorMapSpec, 3> maps;
};

// Requires: can_decode(spec), and spec.shares > 0.
[[nodiscard]] DecodePlan plan_decode(const AttentionSpec& spec);

}  // namespace harpe::cuda
