#pragma once

#include <array>
#include <optional>
#include <string>

#include "exec/cuda/kernels/attention/attention.h"
#include "exec/cuda/kernels/attention/device/decode_args.h"
#include "exec/cuda/kernels/attention/device/decode_config.h"

namespace harpe::cuda {

// Whether the kernel for few queries (device/decode.cuh) can run a spec: one panel and one chunk,
// without a mask by positions, waits or `carried`; heads of 64 or 128 and values of the same size,
// or heads of 576 whose first 512 elements of a key are its value; up to 16 queries (32 with heads
// of 576) over all heads that share keys, or over each of up to 8 equal cuts of these heads; pages
// of a multiple of 8 keys.
[[nodiscard]] bool can_decode(const AttentionSpec& spec);

// For key heads with one query head each, if they have several queries, which see all keys: turns
// the queries into heads of one query, which can be cut and stored at several places. Key heads
// whose keys lie one after the other become sequences. Other specs are returned unchanged.
[[nodiscard]] AttentionSpec with_rows_as_heads(AttentionSpec spec);

// The number of head groups into which the query heads of a key head are cut. Each (sequence, head
// group) is a pair of its own, which reads all keys. Requires: can_decode(spec).
[[nodiscard]] int cut_heads(const AttentionSpec& spec);

// Whether the kernel for many queries, with its keys in parts, is faster, because several head
// groups read many keys again. Requires: can_decode(spec).
[[nodiscard]] bool is_faster_in_parts(const AttentionSpec& spec);

// The number of shares, at most `blocks`, that ends soonest by a model of reading keys and joining
// states. A multiple of cut_heads, if `blocks` are as many. Requires: can_decode(spec).
[[nodiscard]] int choose_shares(const AttentionSpec& spec, int blocks);

// The shares and head groups as launch plans name them, and the parser of the shares; none for
// another text.
[[nodiscard]] std::string print_shares(int shares, int cuts);
[[nodiscard]] std::optional<int> parse_shares(std::string_view variant, int cuts);

// The count at which each fused store is complete: for each of its results, the pairs with heads of
// the result.
[[nodiscard]] std::vector<std::uint32_t> count_stores(const AttentionSpec& spec);

// Errors: G062 the number of shares, results or addends is out of range.
[[nodiscard]] Checked<Ok> check_shares(const AttentionSpec& spec, int blocks);

// The kernel variant for a spec. Requires: can_decode(spec).
[[nodiscard]] device::DecodeConfig decode_config(const AttentionSpec& spec);

// Everything that a launch needs, except what is made on a GPU: encoded maps and states.
struct DecodePlan {
  device::DecodeArgs args{};
  device::DecodeExchange exchange{};  // if the spec has results; without counters and memory
  std::array<TensorMapSpec, 2> maps;  // keys, values
  std::int64_t pairs = 0;
};

// Requires: can_decode(spec), and spec.shares > 0.
[[nodiscard]] DecodePlan plan_decode(const AttentionSpec& spec);

}  // namespace harpe::cuda
