// Compares the CPU kernels with the libraries that they use, called directly, and attention with
// the GEMM of the same type. Rates are counters in GF/s; their ratios follow on standard error.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "exec/cpu/kernels/attention.h"
#include "exec/cpu/kernels/gemm.h"
#include "ir/tensor.h"

#ifdef HARPE_WITH_OPENBLAS
#include <cblas.h>
#endif
#ifdef HARPE_WITH_ONEDNN
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#endif
#ifdef HARPE_WITH_ONEDNN_BF16
extern "C" dnnl_status_t dnnl_gemm_bf16bf16f32(char, char, dnnl_dim_t, dnnl_dim_t, dnnl_dim_t,
                                               float, const std::uint16_t*, dnnl_dim_t,
                                               const std::uint16_t*, dnnl_dim_t, float, float*,
                                               dnnl_dim_t);
#endif

namespace harpe {
namespace {

using Body = std::function<void()>;

constexpr const char* kRate = "GF/s";

void time(benchmark::State& state, double flops, const Body& body) {
  body();
  for (auto _ : state) {
    body();
    benchmark::ClobberMemory();
  }
  state.counters[kRate] =
      benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

// Makes the benchmark's operands only when it runs.
void add(const std::string& name, double flops, const std::function<Body()>& make) {
  benchmark::RegisterBenchmark(name.c_str(), [flops, make](benchmark::State& state) {
    time(state, flops, make());
  })->Unit(benchmark::kMicrosecond);
}

struct Square {
  std::int64_t n;
  HostTensor a;
  HostTensor b;
  HostTensor c;
  Square(DType dtype, std::int64_t size)
      : n(size),
        a(random_tensor(dtype, {size, size}, 1, "a")),
        b(random_tensor(dtype, {size, size}, 1, "b")),
        c(make_tensor(state_dtype(dtype), {size, size})) {}
  template <class T>
  static T* data(HostTensor& tensor) {
    return reinterpret_cast<T*>(tensor.data.data());
  }
};

std::string name_of(const std::string& function, DType dtype, const std::string& shape) {
  return function + "/" + std::string(print(dtype)) + "/" + shape;
}

// A library's function called directly: call(Square&).
template <class Call>
void add_direct(const std::string& function, DType dtype, std::int64_t n, Call call) {
  const double flops = 2.0 * static_cast<double>(n * n * n);
  add(name_of(function, dtype, std::to_string(n)), flops,
      [=]() -> Body { return [square = Square(dtype, n), call]() mutable { call(square); }; });
}

void add_libraries([[maybe_unused]] std::int64_t n) {
#ifdef HARPE_WITH_OPENBLAS
  const auto size = static_cast<blasint>(n);
  add_direct("openblas", DType::F32, n, [size](Square& s) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size, size, size, 1,
                Square::data<float>(s.a), size, Square::data<float>(s.b), size, 0,
                Square::data<float>(s.c), size);
  });
  add_direct("openblas", DType::F64, n, [size](Square& s) {
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size, size, size, 1,
                Square::data<double>(s.a), size, Square::data<double>(s.b), size, 0,
                Square::data<double>(s.c), size);
  });
#endif
#ifdef HARPE_WITH_ONEDNN
  add_direct("onednn", DType::F32, n, [n](Square& s) {
    dnnl_sgemm('N', 'N', n, n, n, 1, Square::data<float>(s.a), n, Square::data<float>(s.b), n, 0,
               Square::data<float>(s.c), n);
  });
#endif
#ifdef HARPE_WITH_ONEDNN_BF16
  add_direct("onednn", DType::BF16, n, [n](Square& s) {
    dnnl_gemm_bf16bf16f32('N', 'N', n, n, n, 1, Square::data<std::uint16_t>(s.a), n,
                          Square::data<std::uint16_t>(s.b), n, 0, Square::data<float>(s.c), n);
  });
#endif
}

MatrixView view_of(const HostTensor& tensor) {
  return {.data = tensor.data.data(), .dtype = tensor.dtype, .row_stride = tensor.shape.back()};
}

void add_multiply(DType dtype, std::int64_t n) {
  add_direct("multiply", dtype, n, [n](Square& s) {
    multiply({.m = n,
              .n = n,
              .k = n,
              .a = view_of(s.a),
              .b = view_of(s.b),
              .c = s.c.data.data(),
              .c_row_stride = n,
              .accumulate = false});
  });
}

struct Head {
  HostTensor q, k, v, o, lse;
  Head(DType dtype, std::int64_t length, std::int64_t dim)
      : q(random_tensor(dtype, {length, dim}, 1, "q")),
        k(random_tensor(dtype, {length, dim}, 1, "k")),
        v(random_tensor(dtype, {length, dim}, 1, "v")),
        o(make_tensor(state_dtype(dtype), {length, dim})),
        lse(make_tensor(state_dtype(dtype), {length})) {}
};

std::string attention_shape(std::int64_t length, std::int64_t dim, bool causal) {
  return std::to_string(length) + "x" + std::to_string(dim) + (causal ? "/causal" : "/full");
}

void add_attention(DType dtype, std::int64_t length, std::int64_t dim, bool causal) {
  const double pairs = static_cast<double>(causal ? length * (length + 1) / 2 : length * length);
  add(name_of("attend", dtype, attention_shape(length, dim, causal)),
      4.0 * pairs * static_cast<double>(dim), [=]() -> Body {
        return [head = Head(dtype, length, dim), length, dim, causal]() mutable {
          attend({.queries = length,
                  .keys = length,
                  .head_dim = dim,
                  .value_dim = dim,
                  .q = view_of(head.q),
                  .k = view_of(head.k),
                  .v = view_of(head.v),
                  .o = head.o.data.data(),
                  .o_row_stride = dim,
                  .lse = head.lse.data.data(),
                  .lse_stride = 1,
                  .scale = 0.125,
                  .carry = false,
                  .visible = {.high = causal ? 0 : Visibility::kUnbounded}});
        };
      });
}

// Prints as usual and keeps the rates.
template <class Reporter>
class Collecting : public Reporter {
 public:
  using Reporter::Reporter;
  void ReportRuns(const std::vector<benchmark::BenchmarkReporter::Run>& runs) override {
    for (const auto& run : runs) {
      if (const auto rate = run.counters.find(kRate); rate != run.counters.end()) {
        rates[run.run_name.function_name] = rate->second.value;
      }
    }
    Reporter::ReportRuns(runs);
  }
  std::map<std::string, double> rates;
};

// "a, b": the rate of a over the rate of b.
using Pairs = std::vector<std::pair<std::string, std::string>>;

void print_ratios(const std::map<std::string, double>& rates, const Pairs& pairs) {
  for (const auto& [ours, theirs] : pairs) {
    const auto a = rates.find(ours);
    const auto b = rates.find(theirs);
    if (a == rates.end() || b == rates.end()) continue;
    std::fprintf(stderr, "%-28s %8.1f GF/s  / %-20s %8.1f GF/s  = %5.2f\n", ours.c_str(), a->second,
                 theirs.c_str(), b->second, a->second / b->second);
  }
}

Pairs add_all() {
  Pairs pairs;
  for (const std::int64_t n : {256, 512, 1024, 2048}) {
    add_libraries(n);
    for (const DType dtype : {DType::F32, DType::BF16, DType::F16, DType::F64}) {
      add_multiply(dtype, n);
      for (const char* library : {"openblas", "onednn"}) {
        pairs.emplace_back(name_of("multiply", dtype, std::to_string(n)),
                           name_of(library, dtype, std::to_string(n)));
      }
    }
  }
  for (const DType dtype : {DType::F32, DType::BF16}) {
    for (const std::int64_t dim : {64, 128}) {
      for (const bool causal : {false, true}) {
        add_attention(dtype, 2048, dim, causal);
        pairs.emplace_back(name_of("attend", dtype, attention_shape(2048, dim, causal)),
                           name_of("multiply", dtype, "1024"));
      }
    }
  }
  return pairs;
}

}  // namespace
}  // namespace harpe

int main(int argc, char** argv) {
  bool json = false;
  for (int i = 1; i < argc; ++i) json |= std::string(argv[i]) == "--benchmark_format=json";
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
#ifdef HARPE_WITH_ONEDNN
  omp_set_num_threads(1);
#endif
  const harpe::Pairs pairs = harpe::add_all();
  const auto run = [&](auto reporter) {
    benchmark::RunSpecifiedBenchmarks(&reporter);
    harpe::print_ratios(reporter.rates, pairs);
  };
  json ? run(harpe::Collecting<benchmark::JSONReporter>())
       : run(harpe::Collecting<benchmark::ConsoleReporter>(benchmark::ConsoleReporter::OO_Tabular));
  return 0;
}
