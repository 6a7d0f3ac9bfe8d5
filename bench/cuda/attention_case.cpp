#include "bench/cuda/attention_case.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/cuda/gemm_case.h"

namespace harpe::bench {
namespace {

std::vector<RowRange> random_ranges(Draw& draw, std::int64_t size, int most) {
  std::vector<std::int64_t> ends = {size};
  for (std::int64_t cut = draw.below(most); cut > 0 && size > 1; --cut) {
    ends.push_back(draw.between(1, size - 1));
  }
  std::ranges::sort(ends);
  const auto repeated = std::ranges::unique(ends);
  ends.erase(repeated.begin(), repeated.end());
  std::vector<RowRange> ranges;
  std::int64_t begin = 0;
  for (const std::int64_t end : ends) {
    ranges.push_back({.begin = begin, .rows = end - begin});
    begin = end;
  }
  return ranges;
}

// The last row sees all keys, the first row sees the first key, some rows see nothing, or random.
std::int64_t random_position(Draw& draw, std::int64_t rows, std::int64_t keys) {
  switch (draw.below(4)) {
    case 0:
      return keys - rows;
    case 1:
      return 0;
    case 2:
      return -draw.between(1, rows);
    default:
      return draw.between(-rows, keys);
  }
}

}  // namespace

void leave_whole(AttentionCase& what) {
  what.panels = {{.begin = 0, .rows = what.rows}};
  what.chunks = {{.begin = 0, .rows = what.keys}};
}

void cut_randomly(AttentionCase& what, Draw& draw, int most_panels, int most_chunks) {
  what.panels = random_ranges(draw, what.rows, most_panels);
  what.chunks = random_ranges(draw, what.keys, most_chunks);
  draw.shuffle(what.chunks);
}

AttentionCase random_case(Draw& draw, const device::AttentionConfig& config, std::int64_t most) {
  AttentionCase random;
  random.batch = draw.between(1, 2);
  random.rows = draw.between(1, most);
  random.keys = draw.between(1, most);
  random.kv_heads = draw.between(1, 3);
  random.heads = random.kv_heads * draw.one_of(std::vector<std::int64_t>{1, 2, 3, 4, 8});
  random.query_dim = config.query_dim;
  random.value_dim = config.value_dim;
  random.in = config.element;
  random.out = config.output;
  random.carried = config.carried;
  random.causal = draw.below(3) != 0;
  if (random.causal) random.first_position = random_position(draw, random.rows, random.keys);
  if (draw.below(3) == 0) random.window = draw.between(1, random.keys + 1);
  if (random.window > 0 && !random.causal) {
    random.first_position = random_position(draw, random.rows, random.keys);
  }
  leave_whole(random);
  random.name = describe(random);
  return random;
}

std::string describe(const AttentionCase& what) {
  std::string text = fmt::format("{}->{} d{}", name_of(what.in), name_of(what.out), what.query_dim);
  if (what.value_dim != what.query_dim) text += fmt::format("/{}", what.value_dim);
  text += fmt::format(" {}/{} heads {}x{} of {}", what.heads, what.kv_heads, what.batch, what.rows,
                      what.keys);
  if (what.causal) text += " causal";
  if (what.causal || what.window > 0) text += fmt::format(" at {}", what.first_position);
  if (what.window > 0) text += fmt::format(" window {}", what.window);
  if (what.carried) text += " carried";
  return text;
}

}  // namespace harpe::bench
