#include "exec/cuda/profile/leaf_specs.h"
#include "exec/cuda/kernels/attention/attention.h"
#include "exec/cuda/kernels/gemm/gemm.h"

namespace harpe::cuda::profile {
namespace {

constexpr std::int64_t kHalf = 2;  // bytes of a bf16
constexpr double kGuessStart = 4e-6;
constexpr double kGuessMemory = 3.5e12;
constexpr double kGuessTensor = 5e14;
constexpr double kGuessPlain = 3e12;

double guess_of(const LeafFigure& figure, double peak) {
  return kGuessStart + std::max(figure.flops / peak, figure.bytes / kGuessMemory);
}

DeviceAddress behind(DeviceAddress address, std::int64_t bytes) {
  return address + static_cast<DeviceAddress>(bytes);
}

template <class T = void>
T* pointer_to(DeviceAddress address) {
  return reinterpret_cast<T*>(address);
}

// Visible pairs of a query and a key. Causal shapes have as many queries as keys.
double pairs_of(const HeadsShape& s) {
  const double all = static_cast<double>(s.queries) * static_cast<double>(s.keys);
  const double seen = s.causal ? (all + static_cast<double>(s.queries)) / 2 : all;
  return static_cast<double>(s.batch * s.heads) * seen;
}

LeafFigure heads_figure(Leaf leaf, DType dtype, const HeadsShape& s) {
  LeafFigure figure;
  figure.leaf = print(leaf);
  figure.dtype = print(dtype);
  figure.causal = s.causal;
  figure.batch = static_cast<double>(s.batch * s.heads);
  figure.rows = static_cast<double>(s.queries);
  figure.columns = static_cast<double>(s.keys);
  figure.depth = static_cast<double>(s.dim);
  return figure;
}

// Bytes of dense heads, each a matrix of rows.
std::int64_t head_bytes(std::int64_t rows, std::int64_t dim, std::int64_t size) {
  return rows * dim * size;
}

LaunchSpec attention_spec(const Operands& at, const HeadsShape& s) {
  const auto tensor = [](DeviceAddress address, std::int64_t rows, std::int64_t heads,
                         std::int64_t dim) {
    return HeadTensor{.address = address,
                      .strides = {.batch = rows * heads * dim, .row = heads * dim, .head = dim}};
  };
  const DeviceAddress keys = behind(at.in, s.batch * s.queries * s.heads * s.dim * kHalf);
  const DeviceAddress values = behind(keys, s.batch * s.keys * s.kv_heads * s.dim * kHalf);
  const DeviceAddress lse = behind(at.out, s.batch * s.queries * s.heads * s.value_dim * kHalf);
  AttentionSpec spec;
  spec.batch = s.batch;
  spec.heads = s.heads;
  spec.kv_heads = s.kv_heads;
  spec.query_dim = s.dim;
  spec.value_dim = s.value_dim;
  spec.causal = s.causal;
  AttentionPanelSpec panel;
  panel.rows = s.queries;
  panel.queries = tensor(at.in, s.queries, s.heads, s.dim);
  panel.output = tensor(at.out, s.queries, s.heads, s.value_dim);
  panel.lse = {.address = lse,
               .strides = {.batch = s.heads * s.queries, .row = 1, .head = s.queries}};
  AttentionChunkSpec chunk;
  chunk.rows = s.keys;
  chunk.keys = tensor(keys, s.keys, s.kv_heads, s.dim);
  chunk.values = tensor(values, s.keys, s.kv_heads, s.value_dim);
  spec.panels = {panel};
  spec.chunks = {chunk};
  return spec;
}

}  // namespace

LaunchSpec gemm_spec(const Operands& at, const GemmSize& s) {
  GemmSpec spec;
  spec.n = s.n;
  spec.k = s.k;
  spec.b = behind(at.in, s.m * s.k * kHalf);
  spec.b_stride = s.n;
  spec.panels = {{.rows = s.m,
                  .k_chunks = {{.a = at.in, .stride = s.k, .k_begin = 0, .k_count = s.k}},
                  .c = at.out,
                  .c_stride = s.n}};
  return spec;
}

LeafCase gemm_case(const GemmSize& s) {
  LeafCase one;
  one.in_bytes = (s.m * s.k + s.k * s.n) * kHalf;
  one.out_bytes = s.m * s.n * kHalf;
  one.figure.leaf = print(Leaf::Matmul);
  one.figure.dtype = print(DType::BF16);
  one.figure.rows = static_cast<double>(s.m);
  one.figure.columns = static_cast<double>(s.n);
  one.figure.depth = static_cast<double>(s.k);
  one.figure.flops = 2.0 * static_cast<double>(s.m * s.n * s.k);
  one.figure.bytes = static_cast<double>(one.in_bytes + one.out_bytes);
  one.guess = guess_of(one.figure, kGuessTensor);
  one.plan = [s](const Member&, const Operands& at) -> Checked<LaunchSpecs> {
    return LaunchSpecs{gemm_spec(at, s)};
  };
  return one;
}

LeafCase attention_case(const HeadsShape& s) {
  LeafCase one;
  const std::int64_t dims = s.dim + s.value_dim;
  const std::int64_t queries = s.batch * s.queries * s.heads;
  const std::int64_t keys = s.batch * s.keys * s.kv_heads;
  one.in_bytes = (queries * s.dim + keys * dims) * kHalf;
  one.out_bytes = queries * s.value_dim * kHalf + queries * size_in_bytes(DType::F32);
  one.figure = heads_figure(Leaf::AttentionForward, DType::BF16, s);
  one.figure.flops = 2.0 * pairs_of(s) * static_cast<double>(dims);
  one.figure.bytes = static_cast<double>((queries + keys) * dims * kHalf);
  one.guess = guess_of(one.figure, kGuessTensor / 2);
  one.plan = [s](const Member&, const Operands& at) -> Checked<LaunchSpecs> {
    return LaunchSpecs{attention_spec(at, s)};
  };
  return one;
}

LeafCase plain_gemm_case(DType dtype, const GemmSize& s) {
  LeafCase one = gemm_case(s);
  const std::int64_t size = size_in_bytes(dtype);
  const std::int64_t state = size_in_bytes(state_dtype(dtype));
  one.in_bytes = (s.m * s.k + s.k * s.n) * size;
  one.out_bytes = s.m * s.n * state;
  one.figure.dtype = print(dtype);
  one.figure.bytes = static_cast<double>(one.in_bytes + one.out_bytes);
  one.guess = guess_of(one.figure, kGuessPlain);
  one.plan = [=](const Member& member, const Operands& at) {
    const DeviceAddress b = behind(at.in, s.m * s.k * size);
    const actions::Multiply gemm{
        .first = {.m = s.m,
                  .n = s.n,
                  .k = s.k,
                  .a = {.data = pointer_to(at.in), .dtype = dtype, .row_stride = s.k},
                  .b = {.data = pointer_to(b), .dtype = dtype, .row_stride = s.n},
                  .c = pointer_to(at.out),
                  .c_row_stride = s.n},
        .loops = {}};
    return plan_launches(choice_of(member), gemm);
  };
  return one;
}

LeafCase plain_attention_case(DType dtype, const HeadsShape& s) {
  LeafCase one;
  const std::int64_t size = size_in_bytes(dtype);
  const std::int64_t state = size_in_bytes(state_dtype(dtype));
  const std::int64_t q = head_bytes(s.queries, s.dim, size);
  const std::int64_t k = head_bytes(s.keys, s.dim, size);
  const std::int64_t o = head_bytes(s.queries, s.dim, state);
  one.in_bytes = s.heads * (q + 2 * k);
  one.out_bytes = s.heads * (o + s.queries * state);
  one.figure = heads_figure(Leaf::AttentionForward, dtype, s);
  one.figure.flops = 4.0 * pairs_of(s) * static_cast<double>(s.dim);
  one.figure.bytes = static_cast<double>(2 * s.heads * (q + k));
  one.guess = guess_of(one.figure, kGuessPlain);
  one.plan = [=](const Member& member, const Operands& at) {
    const auto matrix = [&](std::int64_t bytes) {
      return MatrixView{
          .data = pointer_to(behind(at.in, bytes)), .dtype = dtype, .row_stride = s.dim};
    };
    actions::Attend heads;
    heads.first = {.queries = s.queries,
                   .keys = s.keys,
                   .head_dim = s.dim,
                   .value_dim = s.dim,
                   .q = matrix(0),
                   .k = matrix(s.heads * q),
                   .v = matrix(s.heads * (q + k)),
                   .o = pointer_to(at.out),
                   .o_row_stride = s.dim,
                   .lse = pointer_to(behind(at.out, s.heads * o)),
                   .scale = 0.1,
                   .visible = {.high = s.causal ? 0 : Visibility::kUnbounded}};
    heads.loops = {{.length = s.heads, .bytes = {q, k, k, o, s.queries * state}}};
    return plan_launches(choice_of(member), heads);
  };
  return one;
}

LeafCase backward_case(DType dtype, const HeadsShape& s) {
  LeafCase one;
  const std::int64_t size = size_in_bytes(dtype);
  const std::int64_t state = size_in_bytes(state_dtype(dtype));
  const std::int64_t q = head_bytes(s.queries, s.dim, size);
  const std::int64_t k = head_bytes(s.keys, s.dim, size);
  const std::int64_t dq = head_bytes(s.queries, s.dim, state);
  const std::int64_t dk = head_bytes(s.keys, s.dim, state);
  const std::int64_t rows = s.queries * state;
  one.in_bytes = s.heads * (2 * q + 2 * k + 2 * rows);
  one.out_bytes = s.heads * (dq + 2 * dk);
  one.figure = heads_figure(Leaf::AttentionBackward, dtype, s);
  one.figure.flops = 10.0 * pairs_of(s) * static_cast<double>(s.dim);
  one.figure.bytes = static_cast<double>(4 * s.heads * (q + k));
  one.guess = guess_of(one.figure, dtype == DType::BF16 ? kGuessTensor / 2 : kGuessPlain);
  one.plan = [=](const Member& member, const Operands& at) {
    const auto in = [&](std::int64_t bytes) { return pointer_to(behind(at.in, s.heads * bytes)); };
    const auto matrix = [&](std::int64_t bytes) {
      return MatrixView{.data = in(bytes), .dtype = dtype, .row_stride = s.dim};
    };
    const auto sums = [&](std::int64_t bytes) {
      return SumMatrix{.data = pointer_to(behind(at.out, s.heads * bytes)), .row_stride = s.dim};
    };
    actions::Differentiate heads;
    heads.first = {.queries = s.queries,
                   .keys = s.keys,
                   .head_dim = s.dim,
                   .value_dim = s.dim,
                   .q = matrix(0),
                   .k = matrix(q),
                   .v = matrix(q + k),
                   .d_o = matrix(q + 2 * k),
                   .lse = {.data = in(2 * q + 2 * k), .dtype = state_dtype(dtype)},
                   .delta = {.data = in(2 * q + 2 * k + rows), .dtype = state_dtype(dtype)},
                   .dq = sums(0),
                   .dk = sums(dq),
                   .dv = sums(dq + dk),
                   .scale = 0.1,
                   .visible = {.high = s.causal ? 0 : Visibility::kUnbounded}};
    heads.loops = {{.length = s.heads, .bytes = {q, k, k, q, rows, rows, dq, dk, dk}}};
    return plan_launches(choice_of(member), heads);
  };
  return one;
}

LeafCase pointwise_case(Pointwise function, Leaf leaf, std::int64_t length) {
  constexpr DType kDtype = DType::BF16;
  LeafCase one;
  const std::int64_t bytes = length * size_in_bytes(kDtype);
  one.in_bytes = 2 * bytes;
  one.out_bytes = bytes;
  one.figure.leaf = print(leaf);
  one.figure.dtype = print(kDtype);
  one.figure.rows = static_cast<double>(length);
  one.figure.bytes = static_cast<double>(3 * bytes);
  one.guess = guess_of(one.figure, kGuessPlain);
  one.plan = [=](const Member& member, const Operands& at) {
    actions::Apply apply;
    apply.first = {.function = function,
                   .length = length,
                   .to = pointer_to(at.out),
                   .to_dtype = kDtype,
                   .a = {.data = pointer_to(at.in), .dtype = kDtype},
                   .b = {.data = pointer_to(behind(at.in, bytes)), .dtype = kDtype}};
    return plan_launches(choice_of(member), apply);
  };
  return one;
}

LeafCase row_dot_case(std::int64_t rows, std::int64_t length) {
  constexpr DType kDtype = DType::BF16;
  LeafCase one;
  const std::int64_t bytes = rows * length * size_in_bytes(kDtype);
  one.in_bytes = 2 * bytes;
  one.out_bytes = rows * size_in_bytes(DType::F32);
  one.figure.leaf = print(Leaf::RowDot);
  one.figure.dtype = print(kDtype);
  one.figure.rows = static_cast<double>(rows * length);
  one.figure.bytes = static_cast<double>(one.in_bytes + one.out_bytes);
  one.guess = guess_of(one.figure, kGuessPlain);
  one.plan = [=](const Member& member, const Operands& at) {
    actions::RowDot products;
    products.first = {.rows = rows,
                      .length = length,
                      .dtype = kDtype,
                      .a = {.data = pointer_to(at.in), .row_stride = length},
                      .b = {.data = pointer_to(behind(at.in, bytes)), .row_stride = length},
                      .c = pointer_to(at.out)};
    return plan_launches(choice_of(member), products);
  };
  return one;
}

}  // namespace harpe::cuda::profile
