#include "profile/profile_leaves.h"

#include <memory>

#include "exec/cpu/kernels/attention.h"
#include "exec/cpu/kernels/attention_backward.h"
#include "exec/cpu/kernels/elementwise.h"
#include "exec/cpu/kernels/gemm.h"
#include "exec/cpu/kernels/pointwise.h"
#include "ir/tensor.h"
#include "leaves/leaf.h"

namespace harpe {
namespace {

using Size = std::int64_t;

HostTensor draw(DType dtype, Size rows, Size columns, Size rank) {
  return random_tensor(dtype, {rows, columns}, static_cast<std::uint64_t>(rank), "profile");
}

MatrixView view_of(const HostTensor& tensor) {
  return {.data = tensor.data.data(), .dtype = tensor.dtype, .row_stride = tensor.shape.back()};
}

SumMatrix sums_in(HostTensor& tensor) {
  return {.data = tensor.data.data(), .row_stride = tensor.shape.back()};
}

double bytes_of(DType dtype, Size elements) {
  return static_cast<double>(size_in_bytes(dtype) * elements);
}

LeafShape shape_of(Size rows, Size columns, Size depth, double flops, double bytes) {
  return {.rows = static_cast<double>(rows),
          .columns = static_cast<double>(columns),
          .depth = static_cast<double>(depth),
          .flops = flops,
          .bytes = bytes};
}

ProfileLeaf product(DType dtype, Size m, Size n, Size k) {
  struct Operands {
    HostTensor a, b, c;
  };
  const auto make = [=](Size rank) -> ProfileBody {
    const auto at = std::make_shared<Operands>(Operands{
        draw(dtype, m, k, rank), draw(dtype, k, n, rank), make_tensor(state_dtype(dtype), {m, n})});
    return [=] {
      multiply({.m = m,
                .n = n,
                .k = k,
                .a = view_of(at->a),
                .b = view_of(at->b),
                .c = at->c.data.data(),
                .c_row_stride = n});
    };
  };
  return {.leaf = std::string(print(Leaf::Matmul)),
          .dtype = dtype,
          .shape = shape_of(m, n, k, 2.0 * static_cast<double>(m * n * k),
                            bytes_of(dtype, m * k + k * n + m * n)),
          .make = make};
}

struct Head {
  HostTensor q, k, v, o, lse, d_o, delta, dq, dk, dv;
};

std::shared_ptr<Head> draw_head(DType dtype, Size queries, Size keys, Size dim, Size rank) {
  const DType state = state_dtype(dtype);
  auto head = std::make_shared<Head>();
  head->q = draw(dtype, queries, dim, rank);
  head->k = draw(dtype, keys, dim, rank);
  head->v = draw(dtype, keys, dim, rank);
  head->d_o = draw(dtype, queries, dim, rank);
  head->o = make_tensor(state, {queries, dim});
  head->lse = make_tensor(state, {queries, 1});
  head->delta = make_tensor(state, {queries, 1});
  head->dq = make_tensor(state, {queries, dim});
  head->dk = make_tensor(state, {keys, dim});
  head->dv = make_tensor(state, {keys, dim});
  return head;
}

void attend_head(Head& head, bool causal) {
  const Size dim = head.q.shape.back();
  attend({.queries = head.q.shape.front(),
          .keys = head.k.shape.front(),
          .head_dim = dim,
          .value_dim = dim,
          .q = view_of(head.q),
          .k = view_of(head.k),
          .v = view_of(head.v),
          .o = head.o.data.data(),
          .o_row_stride = dim,
          .lse = head.lse.data.data(),
          .scale = 0.1,
          .visible = {.high = causal ? 0 : Visibility::kUnbounded}});
}

void differentiate_head(Head& head, bool causal) {
  const Size dim = head.q.shape.back();
  differentiate_attention({.queries = head.q.shape.front(),
                           .keys = head.k.shape.front(),
                           .head_dim = dim,
                           .value_dim = dim,
                           .q = view_of(head.q),
                           .k = view_of(head.k),
                           .v = view_of(head.v),
                           .d_o = view_of(head.d_o),
                           .lse = {.data = head.lse.data.data(), .dtype = head.lse.dtype},
                           .delta = {.data = head.delta.data.data(), .dtype = head.delta.dtype},
                           .dq = sums_in(head.dq),
                           .dk = sums_in(head.dk),
                           .dv = sums_in(head.dv),
                           .scale = 0.1,
                           .visible = {.high = causal ? 0 : Visibility::kUnbounded}});
}

struct TimedAttention {
  Size queries = 1;
  Size keys = 1;
  Size dim = 1;
  bool causal = false;
};

ProfileLeaf attention(DType dtype, const TimedAttention& of, bool backward) {
  const double pairs =
      static_cast<double>(of.causal ? of.queries * (of.queries + 1) / 2 : of.queries * of.keys);
  const double flops = (backward ? 10.0 : 4.0) * pairs * static_cast<double>(of.dim);
  const double bytes = bytes_of(dtype, (backward ? 4 : 2) * (of.queries + of.keys) * of.dim);
  const auto make = [=](Size rank) -> ProfileBody {
    const std::shared_ptr<Head> head = draw_head(dtype, of.queries, of.keys, of.dim, rank);
    attend_head(*head, of.causal);  // the backward kernel needs its sums
    if (backward) return [=] { differentiate_head(*head, of.causal); };
    return [=] { attend_head(*head, of.causal); };
  };
  return {.leaf = std::string(print(backward ? Leaf::AttentionBackward : Leaf::AttentionForward)),
          .dtype = dtype,
          .shape = shape_of(of.queries, of.keys, of.dim, flops, bytes),
          .causal = of.causal,
          .make = make};
}

ProfileLeaf pointwise(Leaf leaf, Pointwise function, DType dtype, Size length) {
  struct Operands {
    HostTensor a, b, y;
  };
  const auto make = [=](Size rank) -> ProfileBody {
    const auto at = std::make_shared<Operands>(Operands{
        draw(dtype, 1, length, rank), draw(dtype, 1, length, rank), make_tensor(dtype, {length})});
    return [=] {
      apply_pointwise({.function = function,
                       .length = length,
                       .to = at->y.data.data(),
                       .to_dtype = dtype,
                       .a = {.data = at->a.data.data(), .dtype = dtype},
                       .b = {.data = at->b.data.data(), .dtype = dtype}});
    };
  };
  return {.leaf = std::string(print(leaf)),
          .dtype = dtype,
          .shape = shape_of(length, 1, 1, 0, bytes_of(dtype, 3 * length)),
          .make = make};
}

void add_products(std::vector<ProfileLeaf>& leaves, DType dtype, bool quick) {
  const std::vector<Size> sizes =
      quick ? std::vector<Size>{16, 64} : std::vector<Size>{64, 256, 1024};
  for (const Size m : sizes) {
    for (const Size n : sizes) {
      for (const Size k : sizes) leaves.push_back(product(dtype, m, n, k));
    }
  }
  if (!quick) leaves.push_back(product(dtype, 8, 512, 512));
}

void add_attention(std::vector<ProfileLeaf>& leaves, DType dtype, bool quick) {
  const std::vector<Size> sizes =
      quick ? std::vector<Size>{16, 64} : std::vector<Size>{64, 256, 1024};
  const std::vector<Size> dims = quick ? std::vector<Size>{16} : std::vector<Size>{64, 128};
  for (const Size dim : dims) {
    for (const Size queries : sizes) {
      for (const Size keys : sizes) {
        leaves.push_back(attention(dtype, {queries, keys, dim}, false));
        if (queries != keys) continue;
        leaves.push_back(attention(dtype, {queries, keys, dim, true}, false));
        leaves.push_back(attention(dtype, {queries, keys, dim}, true));
        leaves.push_back(attention(dtype, {queries, keys, dim, true}, true));
      }
    }
    if (!quick) leaves.push_back(attention(dtype, {1, 4096, dim}, false));  // decode
  }
}

}  // namespace

std::vector<ProfileLeaf> profile_leaves(bool quick) {
  std::vector<ProfileLeaf> leaves;
  for (const DType dtype : {DType::F32, DType::BF16}) {
    add_products(leaves, dtype, quick);
    add_attention(leaves, dtype, quick);
    for (const Size length :
         quick ? std::vector<Size>{1 << 10} : std::vector<Size>{1 << 12, 1 << 22}) {
      leaves.push_back(pointwise(Leaf::Add, Pointwise::Add, dtype, length));
      leaves.push_back(pointwise(Leaf::SiluMul, Pointwise::SiluMul, dtype, length));
    }
  }
  return leaves;
}

}  // namespace harpe
