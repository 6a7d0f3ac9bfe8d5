#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "exec/cuda/kernels/attention/attention.h"
#include "exec/cuda/kernels/backward/backward.h"
#include "tests/gpu/actions/on_gpu.h"

namespace harpe::testing_support {
namespace attention_test {

using Attention = OnGpu;
using actions::Loop;

constexpr std::array kTypes = {DType::BF16, DType::F16, DType::F32, DType::F64};

// Heads that share keys, as [batch, position, (key head, group), features].
struct Heads {
  std::int64_t batch, queries, keys, kv_heads, group, head_dim, value_dim;
  DType dtype;
  Visibility visible;
  bool pool = false;            // all batch entries share the first entry's keys
  bool values_in_keys = false;  // the first value_dim elements of a key are its value

  [[nodiscard]] std::int64_t heads() const { return kv_heads * group; }
  [[nodiscard]] double scale() const { return 1 / static_cast<double>(head_dim); }
};

Visibility draw_mask(Arena& arena, std::int64_t queries, std::int64_t keys) {
  Visibility visible;
  const std::int64_t kind = arena.draw(0, 4);
  if (kind == 1) visible.high = arena.draw(-queries / 2, keys - 1);
  if (kind == 2) visible.high = keys - queries;
  if (kind >= 3) {
    visible.high = arena.draw(-3, keys);
    visible.low = visible.high - arena.draw(0, keys);
  }
  if (kind == 4) visible.prefix = arena.draw(0, keys);
  return visible;
}

Heads draw_heads(Arena& arena, DType dtype, bool usual) {
  constexpr std::array<std::array<std::int64_t, 2>, 3> kUsual = {
      {{64, 64}, {128, 128}, {192, 128}}};
  const auto& dims = kUsual[static_cast<std::size_t>(arena.draw(0, 2))];
  Heads h{.batch = arena.draw(1, 2),
          .queries = arena.draw(1, 150),
          .keys = arena.draw(1, 200),
          .kv_heads = arena.draw(1, 3),
          .group = arena.draw(1, 3),
          .head_dim = usual ? dims[0] : arena.draw(1, 150),
          .value_dim = usual ? dims[1] : arena.draw(1, 150),
          .dtype = dtype,
          .visible = {}};
  h.visible = draw_mask(arena, h.queries, h.keys);
  return h;
}

// The integers that masks read, per batch entry; absent tables are -1.
struct Masks {
  std::int64_t documents = -1;
  std::int64_t length = -1;
  std::int64_t pages = -1;
  std::int64_t positions = 0;  // entries of `documents`
  std::int64_t page = 1;
  std::int64_t page_count = 0;
  std::int64_t first_query = 0;
  std::int64_t first_key = 0;

  [[nodiscard]] MaskTables tables(std::byte* base) const {
    const auto table = [&](std::int64_t at) {
      return IndexTable{.data = at < 0 ? nullptr : base + at};
    };
    return {.documents = table(documents),
            .length = table(length),
            .pages = table(pages),
            .page_count = page_count,
            .page = page,
            .first_query = first_query,
            .first_key = first_key};
  }
  // Sets the strides of the mask tables, the last operands, over batch entries.
  template <std::size_t kAll>
  void add_steps(Loop<kAll>& batch) const {
    if (documents >= 0) batch.bytes[kAll - 3] = positions * 4;
    if (length >= 0) batch.bytes[kAll - 2] = 4;
    if (pages >= 0) batch.bytes[kAll - 1] = page_count * 4;
  }
};

std::int64_t add_integers(Arena& arena, const std::vector<std::int64_t>& values) {
  const std::int64_t at = arena.add(DType::I32, static_cast<std::int64_t>(values.size()));
  auto* place = reinterpret_cast<std::int32_t*>(arena.bytes().data() + at);
  for (const std::int64_t value : values) *place++ = static_cast<std::int32_t>(value);
  return at;
}

Masks draw_masks(Arena& arena, const Heads& h) {
  Masks masks;
  masks.first_query = arena.draw(0, 9);
  masks.first_key = arena.draw(0, 9);
  masks.positions = std::max(h.queries + masks.first_query, h.keys + masks.first_key);
  const std::int64_t kind = arena.draw(1, 5);
  if (kind % 2 == 1 && kind < 4) {  // paged caches have no documents
    std::vector<std::int64_t> documents;
    for (std::int64_t i = 0; i < h.batch * masks.positions; ++i) {
      documents.push_back(i / arena.draw(20, 30));
    }
    masks.documents = add_integers(arena, documents);
  }
  if (kind >= 2) {
    std::vector<std::int64_t> lengths;
    for (std::int64_t i = 0; i < h.batch; ++i) lengths.push_back(arena.draw(0, h.keys + 5));
    masks.length = add_integers(arena, lengths);
  }
  if (kind >= 4) {
    masks.page = arena.draw(1, 40);
    masks.page_count = (h.keys + masks.first_key + masks.page - 1) / masks.page;
    std::vector<std::int64_t> pages;  // random order, some absent, none twice
    for (std::int64_t sequence = 0; sequence < h.batch; ++sequence) {
      std::vector<std::int64_t> own(static_cast<std::size_t>(masks.page_count));
      std::iota(own.begin(), own.end(), 0);
      for (std::size_t i = own.size(); i > 1; --i) {
        std::swap(own[i - 1],
                  own[static_cast<std::size_t>(arena.draw(0, std::ssize(own) - 1)) % i]);
      }
      for (std::int64_t& page : own) {
        if (arena.draw(0, 4) == 0) page = -1;
      }
      pages.insert(pages.end(), own.begin(), own.end());
    }
    masks.pages = add_integers(arena, pages);
  }
  return masks;
}

// A tensor [batch, rows, heads, columns].
struct Tensor {
  std::int64_t at, rows, heads, columns;
  DType dtype;

  [[nodiscard]] std::int64_t size() const { return size_in_bytes(dtype); }
  [[nodiscard]] std::int64_t row_stride() const { return heads * columns; }
  [[nodiscard]] MatrixView view(std::byte* base) const {
    return {.data = base + at, .dtype = dtype, .row_stride = row_stride(), .column_stride = 1};
  }
};

Tensor add_tensor(Arena& arena, const Heads& h, std::int64_t rows, std::int64_t heads,
                  std::int64_t columns, DType dtype, double bound) {
  return {.at = arena.add(dtype, h.batch * rows * heads * columns, bound),
          .rows = rows,
          .heads = heads,
          .columns = columns,
          .dtype = dtype};
}

// Bytes from one index of a loop to the next: 0 batch entries, 1 key heads, 2 heads of a group.
std::int64_t step_of(const Tensor& tensor, const Heads& h, int loop) {
  const bool of_keys = tensor.rows == h.keys && tensor.heads == h.kv_heads;
  if (loop == 0 && h.pool && of_keys) return 0;
  if (loop == 0) return tensor.rows * tensor.row_stride() * tensor.size();
  const bool shared = tensor.heads == h.kv_heads && h.group > 1;
  if (loop == 1) return (shared ? 1 : h.group) * tensor.columns * tensor.size();
  return shared ? 0 : tensor.columns * tensor.size();
}

template <std::size_t kOperands, std::size_t kAll>
void add_loops(const Heads& h, const std::array<Tensor, kOperands>& tensors, bool shares_sums,
               std::vector<Loop<kAll>>& loops) {
  const std::array<std::int64_t, 3> lengths = {h.batch, h.kv_heads, h.group};
  for (int at = 0; at < 3; ++at) {
    Loop<kAll> loop{.length = lengths[static_cast<std::size_t>(at)], .bytes = {}};
    for (std::size_t i = 0; i < kOperands; ++i) loop.bytes[i] = step_of(tensors[i], h, at);
    loop.reduces = shares_sums && at == 2;
    loops.push_back(loop);
  }
}

struct Bounds {
  double o;
  double lse;
};

// Scores err by `score`, weights relatively by twice that. Tensor-core kernels also round weights
// to the operands' type, and compute powers of 2 with an error of 2^-22.
Bounds bounds_of(const Heads& h) {
  const double unit = unit_roundoff(state_dtype(h.dtype));
  const double score = 2 * static_cast<double>(h.head_dim + 4) * unit;
  const bool half = size_in_bytes(h.dtype) == 2;
  const double weights = half ? 2 * unit_roundoff(h.dtype) + 0x1p-19 : 0;
  return {.o = 4 * score + 2 * static_cast<double>(h.keys + 8) * unit + weights,
          .lse = 2 * score + static_cast<double>(h.keys + 8) * unit + (half ? 0x1p-16 : 0)};
}

// Puts NaN into keys and values beyond the lengths, which no query may read.
void poison_unseen(Arena& arena, const Heads& h, const Masks& masks, const Tensor& tensor) {
  if (masks.length < 0 || masks.pages >= 0) return;
  for (std::int64_t entry = 0; entry < h.batch; ++entry) {
    const std::int64_t length =
        reinterpret_cast<const std::int32_t*>(arena.bytes().data() + masks.length)[entry];
    const std::int64_t row = tensor.row_stride() * tensor.size();
    const std::int64_t seen = std::clamp<std::int64_t>(length - masks.first_key, 0, h.keys);
    std::byte* const begin = arena.bytes().data() + tensor.at + entry * h.keys * row;
    std::fill(begin + seen * row, begin + h.keys * row, std::byte{0xff});
  }
}

void check_attention(Arena& arena, const Heads& h, const Masks& masks, bool carry, int& fast,
                     const std::function<std::vector<cuda::LaunchSpec>(const MakeAction&)>& check) {
  const Bounds bounds = bounds_of(h);
  const DType state = state_dtype(h.dtype);
  const Tensor queries = add_tensor(arena, h, h.queries, h.heads(), h.head_dim, h.dtype, 0);
  const Tensor keys = add_tensor(arena, h, h.keys, h.kv_heads, h.head_dim, h.dtype, 0);
  const std::array<Tensor, 5> tensors = {
      queries, keys,
      h.values_in_keys ? keys : add_tensor(arena, h, h.keys, h.kv_heads, h.value_dim, h.dtype, 0),
      add_tensor(arena, h, h.queries, h.heads(), h.value_dim, state, bounds.o),
      add_tensor(arena, h, h.queries, h.heads(), 1, state, bounds.lse)};
  poison_unseen(arena, h, masks, tensors[1]);
  poison_unseen(arena, h, masks, tensors[2]);
  const auto specs = check([&](std::byte* base) {
    actions::Attend attend;
    attend.first = {.queries = h.queries,
                    .keys = h.keys,
                    .head_dim = h.head_dim,
                    .value_dim = h.value_dim,
                    .q = tensors[0].view(base),
                    .k = tensors[1].view(base),
                    .v = tensors[2].view(base),
                    .o = base + tensors[3].at,
                    .o_row_stride = tensors[3].row_stride(),
                    .lse = base + tensors[4].at,
                    .lse_stride = tensors[4].row_stride(),
                    .scale = h.scale(),
                    .carry = carry,
                    .visible = h.visible,
                    .tables = masks.tables(base)};
    add_loops(h, tensors, false, attend.loops);
    masks.add_steps(attend.loops.front());
    return actions::Action{std::move(attend)};
  });
  for (const cuda::LaunchSpec& spec : specs) {
    if (spec.is<cuda::AttentionSpec>()) ++fast;
  }
}

TEST_F(Attention, is_the_hosts) {
  int fast = 0;
  for (unsigned seed = 0; seed < 64; ++seed) {
    Arena arena(seed);
    const Heads h = draw_heads(arena, kTypes[seed % 4], seed % 12 < 8);
    check_attention(arena, h, {}, seed % 3 == 0, fast,
                    [&](const MakeAction& make) { return check(arena, make); });
    if (HasFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_GT(fast, 4);
}

// Query heads of a key head: few, or more than the columns of a kernel for few queries.
std::int64_t draw_group(Arena& arena) {
  constexpr std::array<std::int64_t, 6> kMany = {12, 16, 24, 32, 64, 128};
  if (arena.draw(0, 1) == 0) return arena.draw(1, 8);
  return kMany[static_cast<std::size_t>(arena.draw(0, 5))];
}

// Heads as latent attention has them.
void hold_values_in_keys(Heads& h) {
  h.head_dim = 576;
  h.value_dim = 512;
  h.values_in_keys = true;
}

// One query per sequence, as in decoding. Selects the kernel for few queries, or the kernel that
// splits the keys and treats heads with shared keys as rows.
TEST_F(Attention, of_a_single_query_is_the_hosts) {
  int fast = 0;
  int most_parts = 0;
  int most_shares = 0;
  for (unsigned seed = 0; seed < 44; ++seed) {
    Arena arena(seed);
    Heads h = draw_heads(arena, seed % 2 == 0 ? DType::BF16 : DType::F16, true);
    if (h.head_dim == 192) h.dtype = DType::BF16;
    h.batch = arena.draw(1, 5);
    h.queries = 1;
    h.keys = seed % 3 == 0 ? arena.draw(1, 1500) : 512 * arena.draw(1, 4);
    h.kv_heads = arena.draw(1, 4);
    h.group = draw_group(arena);
    if (seed % 5 == 3) hold_values_in_keys(h);
    h.visible = {};
    const bool carry = seed % 8 == 6 && h.dtype == DType::BF16 && !h.values_in_keys;
    check_attention(arena, h, {}, carry, fast, [&](const MakeAction& make) {
      const auto specs = check(arena, make);
      for (const cuda::LaunchSpec& spec : specs) {
        const auto* const heads = spec.find<cuda::AttentionSpec>();
        if (heads == nullptr) continue;
        most_parts = std::max(most_parts, heads->parts);
        most_shares = std::max(most_shares, heads->shares);
      }
      return specs;
    });
    if (HasFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_EQ(fast, 44);
  EXPECT_GE(most_parts, 2);
  EXPECT_GE(most_shares, 32);
}

// Page tables as caches have them: pages of a multiple of 8 keys in random order, some absent.
Masks draw_cache(Arena& arena, Heads& h) {
  constexpr std::array<std::int64_t, 6> kPages = {8, 16, 48, 64, 128, 256};
  Masks masks;
  masks.first_key = arena.draw(0, 1) * arena.draw(0, 300);
  const bool is_paged = arena.draw(0, 2) > 0;
  const bool is_ragged = !is_paged || arena.draw(0, 1) == 0;
  std::int64_t most = h.keys + masks.first_key;
  if (is_paged) {
    masks.page = kPages[static_cast<std::size_t>(arena.draw(0, 5))];
    h.pool = arena.draw(0, 1) == 0;
    const std::int64_t held = (most + masks.page - 1) / masks.page;
    masks.page_count = h.pool ? std::max<std::int64_t>(held / h.batch, 1) : held;
    most = masks.page_count * masks.page;
    std::vector<std::int64_t> pages;
    while (std::ssize(pages) < h.batch * masks.page_count) {
      std::vector<std::int64_t> own(static_cast<std::size_t>(held));
      std::iota(own.begin(), own.end(), 0);
      for (std::size_t i = own.size(); i > 1; --i) {
        std::swap(own[i - 1],
                  own[static_cast<std::size_t>(arena.draw(0, static_cast<std::int64_t>(i) - 1))]);
      }
      const std::int64_t taken = h.pool ? held : masks.page_count;
      for (std::int64_t i = 0; i < taken; ++i) {
        pages.push_back(arena.draw(0, 9) == 0 ? -1 : own[static_cast<std::size_t>(i)]);
      }
    }
    pages.resize(static_cast<std::size_t>(h.batch * masks.page_count));
    masks.pages = add_integers(arena, pages);
  }
  if (is_ragged) {
    std::vector<std::int64_t> lengths;
    for (std::int64_t i = 0; i < h.batch; ++i) {
      lengths.push_back(arena.draw(0, 5) == 0 ? 0 : arena.draw(0, most + 5));
    }
    masks.length = add_integers(arena, lengths);
  }
  return masks;
}

TEST_F(Attention, of_few_queries_sees_its_cache) {
  int fast = 0;
  for (unsigned seed = 0; seed < 72; ++seed) {
    Arena arena(seed);
    Heads h = draw_heads(arena, seed % 2 == 0 ? DType::BF16 : DType::F16, true);
    h.head_dim = h.value_dim = seed % 4 < 2 ? 64 : 128;
    if (seed % 3 == 2) hold_values_in_keys(h);
    h.batch = seed % 7 == 0 ? arena.draw(30, 40) : arena.draw(1, 5);
    h.keys = arena.draw(1, seed % 7 == 0 ? 100 : 1000);
    h.group = draw_group(arena);
    h.queries = h.group > 8 ? 1 : arena.draw(1, 4);
    h.visible = {};
    const Masks masks = draw_cache(arena, h);
    check_attention(arena, h, masks, false, fast,
                    [&](const MakeAction& make) { return check(arena, make); });
    if (HasFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_EQ(fast, 72);
}

TEST_F(Attention, sees_what_data_let_it_see) {
  int fast = 0;
  for (unsigned seed = 0; seed < 64; ++seed) {
    Arena arena(seed);
    const Heads h = draw_heads(arena, kTypes[seed % 4], false);
    check_attention(arena, h, draw_masks(arena, h), seed % 5 == 0, fast,
                    [&](const MakeAction& make) { return check(arena, make); });
    if (HasFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_EQ(fast, 0);
}

// Scores are at most 1 and lse lies in -1 to 1, so weights are below e^2 and products with values
// below their count. The bound is the number of terms times the error of a term of this size.
double gradient_bound(const Heads& h) {
  const double most = static_cast<double>(std::max(h.queries * h.group, h.keys));
  const double product = std::max(1.0, static_cast<double>(h.value_dim + 1) * h.scale());
  const auto operations = static_cast<double>(2 * h.head_dim + h.value_dim + 32) + most;
  return most * 7.4 * product * operations * unit_roundoff(state_dtype(h.dtype));
}

// The random choices of a test besides the heads.
struct BackwardCase {
  Heads heads;
  Masks masks;
  DType delta = DType::F32;
  std::array<bool, 3> carry = {};  // accumulates dq, dk, dv
  double bound = 0;
};

actions::Differentiate gradients_of(const BackwardCase& what, const std::array<Tensor, 9>& tensors,
                                    std::byte* base) {
  const Heads& h = what.heads;
  const auto sums = [&](std::size_t i) {
    return SumMatrix{.data = base + tensors[i].at,
                     .row_stride = tensors[i].row_stride(),
                     .carry = what.carry[i - 6]};
  };
  const auto values = [&](std::size_t i) {
    return RowValues{
        .data = base + tensors[i].at, .dtype = tensors[i].dtype, .stride = tensors[i].row_stride()};
  };
  actions::Differentiate gradients;
  gradients.first = {.queries = h.queries,
                     .keys = h.keys,
                     .head_dim = h.head_dim,
                     .value_dim = h.value_dim,
                     .q = tensors[0].view(base),
                     .k = tensors[1].view(base),
                     .v = tensors[2].view(base),
                     .d_o = tensors[3].view(base),
                     .lse = values(4),
                     .delta = values(5),
                     .dq = sums(6),
                     .dk = sums(7),
                     .dv = sums(8),
                     .scale = h.scale(),
                     .visible = h.visible,
                     .tables = what.masks.tables(base)};
  add_loops(h, tensors, true, gradients.loops);
  what.masks.add_steps(gradients.loops.front());
  return gradients;
}

std::array<Tensor, 9> add_gradients(Arena& arena, const BackwardCase& what) {
  const Heads& h = what.heads;
  const DType state = state_dtype(h.dtype);
  return {add_tensor(arena, h, h.queries, h.heads(), h.head_dim, h.dtype, 0),
          add_tensor(arena, h, h.keys, h.kv_heads, h.head_dim, h.dtype, 0),
          add_tensor(arena, h, h.keys, h.kv_heads, h.value_dim, h.dtype, 0),
          add_tensor(arena, h, h.queries, h.heads(), h.value_dim, h.dtype, 0),
          add_tensor(arena, h, h.queries, h.heads(), 1, DType::F32, 0),
          add_tensor(arena, h, h.queries, h.heads(), 1, what.delta, 0),
          add_tensor(arena, h, h.queries, h.heads(), h.head_dim, state, what.bound),
          add_tensor(arena, h, h.keys, h.kv_heads, h.head_dim, state, what.bound),
          add_tensor(arena, h, h.keys, h.kv_heads, h.value_dim, state, what.bound)};
}

TEST_F(Attention, has_the_hosts_gradients) {
  for (unsigned seed = 0; seed < 48; ++seed) {
    Arena arena(seed);
    BackwardCase what;
    what.heads = draw_heads(arena, kTypes[seed % 4], false);
    if (seed % 2 == 0) what.masks = draw_masks(arena, what.heads);
    what.delta = DType::F64;
    what.carry = {seed % 2 == 0, seed % 3 == 0, seed % 5 == 0};
    what.bound = gradient_bound(what.heads);
    const std::array<Tensor, 9> tensors = add_gradients(arena, what);
    check(arena, [&](std::byte* base) { return gradients_of(what, tensors, base); });
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

// The tensor-core kernel rounds weights and gradients of scores to the operands' type.
TEST_F(Attention, has_the_hosts_gradients_on_tensor_cores) {
  for (unsigned seed = 0; seed < 24; ++seed) {
    Arena arena(seed);
    BackwardCase what;
    what.heads = draw_heads(arena, DType::BF16, true);
    what.heads.head_dim = what.heads.value_dim = seed % 2 == 0 ? 64 : 128;
    what.heads.visible.prefix = 0;
    what.carry = {seed % 2 == 0, seed % 3 == 0, seed % 5 == 0};
    const Heads& h = what.heads;
    const double most = static_cast<double>(std::max(h.queries * h.group, h.keys));
    const double product = std::max(1.0, static_cast<double>(h.value_dim + 1) * h.scale());
    what.bound = gradient_bound(h) + most * 7.4 * product * unit_roundoff(DType::BF16);
    const std::array<Tensor, 9> tensors = add_gradients(arena, what);
    const auto specs =
        check(arena, [&](std::byte* base) { return gradients_of(what, tensors, base); });
    for (const cuda::LaunchSpec& spec : specs) {
      EXPECT_TRUE(spec.is<cuda::BackwardSpec>());
    }
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

}  // namespace attention_test
}  // namespace harpe::testing_support
