#include <cmath>
#include <optional>
#include <variant>

#include "exec/cuda/kernels/gemm/gemm.h"
#include "exec/cuda/kernels/gemm/gemm_choice_text.h"
#include "exec/cuda/kernels/gemm/gemm_variants.h"
#include "exec/cuda/kernels/loop_nests.h"
#include "exec/cuda/kernels/plain/plain_launch.h"
#include "offers/gpu_kernels.h"

namespace harpe::cuda {
namespace {

using actions::Loop;
using device::GemmLayout;

// Above this number of GEMMs, one plain launch is faster than a tensor-core launch for each.
constexpr std::int64_t kMostGemms = 64;

// The stride of a single row or column has no meaning; returns one that every kernel accepts.
std::int64_t stride_of(std::int64_t stride, std::int64_t count, std::int64_t length) {
  return count == 1 ? divide_up(length, 8) * 8 : stride;
}

// The GEMM for tensor cores, if the operands' layouts allow it. Where its kernel does not read how
// many rows are in use, it multiplies all rows: each row of C depends only on the same row of A,
// and nothing reads the unused ones.
std::optional<GemmSpec> fast_gemm(const GemmProblem& p, const device::UsedRows& used,
                                  std::int64_t likely_rows, const LaunchChoice& choice) {
  const auto element = half_of(p.a.dtype);
  const bool is_transposed = p.a.column_stride != 1 && p.k > 1;
  if (!element || p.k <= 0 || (is_transposed && p.a.row_stride != 1)) return std::nullopt;
  GemmSpec spec;
  spec.m_major = is_transposed;
  spec.n = p.n;
  spec.k = p.k;
  spec.in = *element;
  spec.out = device::Element::F32;
  spec.add = p.accumulate;
  spec.b = address_of(p.b.data);
  spec.b_stride = stride_of(p.b.row_stride, p.k, p.n);
  if (p.b.column_stride != 1 && p.n > 1) {
    spec.layout = GemmLayout::KMajor;
    spec.b_stride = p.b.column_stride;
  } else if (p.n == 1 && p.b.row_stride == 1) {
    spec.layout = GemmLayout::KMajor;
    spec.b_stride = stride_of(0, 1, p.k);
  }
  const std::int64_t a_stride =
      is_transposed ? p.a.column_stride : stride_of(p.a.row_stride, p.m, p.k);
  const std::int64_t a_row = is_transposed ? p.m : p.k;
  const std::int64_t b_row = spec.layout == GemmLayout::KMajor ? p.k : p.n;
  if (a_stride < a_row || spec.b_stride < b_row) return std::nullopt;  // rows that overlap
  spec.panels = {
      {.rows = p.m,
       .k_chunks = {{.a = address_of(p.a.data), .stride = a_stride, .k_begin = 0, .k_count = p.k}},
       .c = address_of(p.c),
       .c_stride = stride_of(p.c_row_stride, p.m, p.n)}};
  spec.engine = engine_of(choice.kernel);
  if (spec.engine != LeafEngine::Own) return spec;
  spec.panels.front().used = used;
  spec.panels.front().likely_rows = likely_rows;
  if (check(spec, choice.multiprocessors).ok()) return spec;
  spec.panels.front().used = {};
  spec.panels.front().likely_rows = 0;
  if (!check(spec, choice.multiprocessors).ok()) return std::nullopt;
  return spec;
}

// The tensor-core launches for all GEMMs of the action; none if one of them does not fit.
std::optional<LaunchSpecs> fast_gemms(const LaunchChoice& choice, const actions::Multiply& products,
                                      const Loops<3>& loops) {
  const std::span<const Loop<3>> all(loops);
  const bool is_own = engine_of(choice.kernel) == LeafEngine::Own;
  if (is_own && turns_of(all) > kMostGemms) return std::nullopt;
  const GemmProblem& first = products.first;
  const device::UsedRows used = used_rows(products.used, products.result, first.m);
  const auto likely =
      static_cast<std::int64_t>(std::ceil(static_cast<double>(first.m) * products.used.taken));
  LaunchSpecs launches;
  bool fast = true;
  actions::for_each_turn(all, [&](const auto& offsets, bool again) {
    GemmProblem p = first;
    p.a.data = moved(p.a.data, offsets[0]);
    p.b.data = moved(p.b.data, offsets[1]);
    p.c = moved(p.c, offsets[2]);
    p.accumulate = p.accumulate || again;
    const std::optional<GemmSpec> spec = fast ? fast_gemm(p, used, likely, choice) : std::nullopt;
    fast = fast && spec;
    if (fast) launches.emplace_back(*spec);
  });
  if (!fast) return std::nullopt;
  return launches;
}

Checked<std::optional<LaunchSpecs>> plan_gemms(const LaunchChoice& choice,
                                               const actions::Action& action) {
  const auto* const products = std::get_if<actions::Multiply>(&action);
  if (products == nullptr) return std::optional<LaunchSpecs>();
  const GemmProblem& p = products->first;
  const Loops<3> loops = joined(products->loops);
  const bool is_empty = p.m <= 0 || p.n <= 0 || turns_of(std::span<const Loop<3>>(loops)) == 0;
  if (!number_of(p.a.dtype) || p.a.dtype != p.b.dtype || is_empty) {
    return std::optional<LaunchSpecs>();
  }
  std::optional<LaunchSpecs> fast = fast_gemms(choice, *products, loops);
  if (!fast && !choice.kernel.empty()) {
    return no_leaf(choice, "it takes no operands of `" + std::string(print(p.a.dtype)) +
                               "`, or their rows are no multiples of 16 bytes");
  }
  if (!fast || products->used.rows == nullptr || products->result == nullptr) return fast;
  const bool asks = fast->front().get<GemmSpec>().panels.front().used.rows != nullptr;
  if (!asks) fast->emplace_back(copy_of_number(products->result, products->used.rows));
  return fast;
}

bool moves_gemm_by_threads(const launch::Kernel& kernel, DType dtype) {
  return kernel.name == kGemmSm90 && size_in_bytes(dtype) == 2 && moves_by_threads(kernel.variant);
}

}  // namespace

KernelFamily gemm_family() {
  return {.plan = plan_gemms,
          .variants = gemm_variants,
          .moves_by_threads = moves_gemm_by_threads,
          .bounds_epochs = [](const launch::Kernel& kernel) { return kernel.name == kGemmSm90; }};
}

}  // namespace harpe::cuda
