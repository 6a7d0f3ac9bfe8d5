#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/cuda/draw.h"
#include "exec/cuda/kernels/attention/device/attention_config.h"

namespace harpe::bench {

// Consecutive rows of queries, or of keys and values.
struct RowRange {
  std::int64_t begin = 0;
  std::int64_t rows = 0;
};

// An attention problem: key 0 is at position 0, query row 0 at `first_position`.
struct AttentionCase {
  std::string name;
  std::int64_t batch = 1;
  std::int64_t rows = 0;
  std::int64_t keys = 0;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t query_dim = 128;
  std::int64_t value_dim = 128;
  device::Element in = device::Element::BF16;
  device::Element out = device::Element::BF16;
  bool causal = false;
  std::int64_t window = 0;
  std::int64_t first_position = 0;
  bool carried = false;
  bool packed = false;             // rows without padding between them
  bool values_in_keys = false;     // the first value_dim elements of a key are its value
  std::vector<RowRange> panels{};  // of queries, ascending
  std::vector<RowRange> chunks{};  // of keys, in the order of use

  [[nodiscard]] std::int64_t flags() const {
    return static_cast<std::int64_t>(panels.size() + chunks.size());
  }
};

// One panel and one chunk.
void leave_whole(AttentionCase& what);
// Chunks in any order.
void cut_randomly(AttentionCase& what, Draw& draw, int most_panels, int most_chunks);
// Heads and types of the configuration; up to `most` rows and keys, any mask.
[[nodiscard]] AttentionCase random_case(Draw& draw, const device::AttentionConfig& config,
                                        std::int64_t most);

// "bf16 d128 8/2 heads 2x301 of 512 causal"
[[nodiscard]] std::string describe(const AttentionCase& what);

}  // namespace harpe::bench
