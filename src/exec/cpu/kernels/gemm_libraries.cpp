#include <climits>
#include <cstdint>
#include <string>
#include <string_view>

#include "exec/cpu/kernels/gemm.h"
#include "exec/cpu/kernels/gemm_dense.h"
#include "support/check.h"

#ifdef HARPE_WITH_OPENBLAS
#include <cblas.h>
#include <dlfcn.h>
#endif
#ifdef HARPE_WITH_ONEDNN
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#endif
#ifdef HARPE_WITH_ONEDNN_BF16
// Exported, but declared in no public header.
extern "C" dnnl_status_t dnnl_gemm_bf16bf16f32(char transa, char transb, dnnl_dim_t m, dnnl_dim_t n,
                                               dnnl_dim_t k, float alpha, const std::uint16_t* a,
                                               dnnl_dim_t lda, const std::uint16_t* b,
                                               dnnl_dim_t ldb, float beta, float* c,
                                               dnnl_dim_t ldc);
#endif

namespace harpe {
namespace {

enum class Library : std::uint8_t { OwnLoops, OpenBlas, OneDnn };

[[maybe_unused]] bool has_avx512() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
#else
  return false;
#endif
}

#ifdef HARPE_WITH_ONEDNN_BF16
bool has_avx512_bf16() {
#if defined(__x86_64__)
  return has_avx512() && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}
#endif

#ifdef HARPE_WITH_OPENBLAS
// OpenBLAS, opened by the first GEMM and not linked, because on loading it starts threads, and ends
// the process if the system refuses them. The process sets the number of threads
// (docs/decisions/0006-threaded-openblas.md). Never closed.
class OpenBlas {
 public:
  OpenBlas() : file_(::dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL)) {
    if (file_ == nullptr) return;
    is_there_ = find("cblas_sgemm", sgemm) && find("cblas_dgemm", dgemm) &&
                find("openblas_get_parallel", get_parallel) &&
                find("openblas_get_corename", get_corename);
  }
  [[nodiscard]] bool is_there() const { return is_there_; }

  decltype(&::cblas_sgemm) sgemm = nullptr;
  decltype(&::cblas_dgemm) dgemm = nullptr;
  decltype(&::openblas_get_parallel) get_parallel = nullptr;
  decltype(&::openblas_get_corename) get_corename = nullptr;

 private:
  template <class Function>
  bool find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(file_, name));
    return function != nullptr;
  }

  void* file_;
  bool is_there_ = false;
};

const OpenBlas& open_blas() {
  static const OpenBlas opened;
  return opened;
}
#endif

// OpenBLAS selects kernels by processor model, and AVX2 kernels for models newer than itself. These
// run at half the rate of oneDNN, which generates code for the actual processor, and at 0.6 of our
// own loops (measured, f32 and f64). Its sequential build does not lock its buffers: two concurrent
// callers get wrong results.
Library blas_or_loops() {
#ifdef HARPE_WITH_OPENBLAS
  const OpenBlas& blas = open_blas();
  if (!blas.is_there() || blas.get_parallel() == OPENBLAS_SEQUENTIAL) return Library::OwnLoops;
  const std::string_view core = blas.get_corename();
  const bool outdated = has_avx512() && (core == "Haswell" || core == "Zen");
  return outdated ? Library::OwnLoops : Library::OpenBlas;
#else
  return Library::OwnLoops;
#endif
}

Library f32_library() {
#ifdef HARPE_WITH_ONEDNN
  if (has_avx512()) return Library::OneDnn;
#endif
  return blas_or_loops();
}

Library f64_library() { return blas_or_loops(); }

// Without the instruction oneDNN emulates it, which is slower than widening to f32.
bool multiplies_bf16() {
#ifdef HARPE_WITH_ONEDNN_BF16
  return has_avx512_bf16();
#else
  return false;
#endif
}

Library chosen(Library fit, Products products) {
  return products == Products::OwnLoops ? Library::OwnLoops : fit;
}

std::string_view name(Library library) {
  switch (library) {
    case Library::OwnLoops:
      return "own loops";
    case Library::OpenBlas:
      return "OpenBLAS";
    case Library::OneDnn:
      return "oneDNN";
  }
  return "";
}

#ifdef HARPE_WITH_OPENBLAS
template <class Problem>
bool fits_blas(const Problem& p) {
  for (const std::int64_t extent : {p.m, p.n, p.k, p.a.stride, p.b.stride, p.c_row_stride}) {
    if (extent > INT_MAX) return false;
  }
  return true;
}

CBLAS_TRANSPOSE blas_flag(bool transposed) { return transposed ? CblasTrans : CblasNoTrans; }

template <class Function, class Problem>
void multiply_blas(Function multiply, const Problem& p) {
  const auto narrow = [](std::int64_t extent) { return static_cast<blasint>(extent); };
  multiply(CblasRowMajor, blas_flag(p.a.transposed), blas_flag(p.b.transposed), narrow(p.m),
           narrow(p.n), narrow(p.k), 1, p.a.data, narrow(p.a.stride), p.b.data, narrow(p.b.stride),
           p.accumulate ? 1 : 0, p.c, narrow(p.c_row_stride));
}
#endif

#ifdef HARPE_WITH_ONEDNN
// oneDNN uses the OpenMP thread count of the calling thread: set to one for the time of a call.
class OneOmpThread {
 public:
  OneOmpThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneOmpThread() { omp_set_num_threads(before_); }
  OneOmpThread(const OneOmpThread&) = delete;
  OneOmpThread& operator=(const OneOmpThread&) = delete;

 private:
  int before_;
};

template <auto kFunction, class Problem>
void multiply_onednn(const Problem& p) {
  const OneOmpThread one;
  const dnnl_status_t status = kFunction(
      p.a.transposed ? 'T' : 'N', p.b.transposed ? 'T' : 'N', p.m, p.n, p.k, 1.0F, p.a.data,
      p.a.stride, p.b.data, p.b.stride, p.accumulate ? 1.0F : 0.0F, p.c, p.c_row_stride);
  HP_CHECK(status == dnnl_success, "oneDNN answered " + std::to_string(status));
}
#endif

}  // namespace

void multiply_dense(const GemmF32& problem, Products products) {
  static const Library kFit = f32_library();
  [[maybe_unused]] const Library library = chosen(kFit, products);
#ifdef HARPE_WITH_ONEDNN
  if (library == Library::OneDnn) return multiply_onednn<&dnnl_sgemm>(problem);
#endif
#ifdef HARPE_WITH_OPENBLAS
  if (library == Library::OpenBlas && fits_blas(problem)) {
    return multiply_blas(open_blas().sgemm, problem);
  }
#endif
  multiply_loops(problem);
}

void multiply_dense(const GemmF64& problem, Products products) {
  static const Library kFit = f64_library();
  [[maybe_unused]] const Library library = chosen(kFit, products);
#ifdef HARPE_WITH_OPENBLAS
  if (library == Library::OpenBlas && fits_blas(problem)) {
    return multiply_blas(open_blas().dgemm, problem);
  }
#endif
  multiply_loops(problem);
}

void multiply_dense(const GemmBF16& problem, Products products) {
  HP_CHECK(products == Products::Libraries && multiplies_bf16(),
           "bf16 operands have to be widened on this machine");
#ifdef HARPE_WITH_ONEDNN_BF16
  multiply_onednn<&dnnl_gemm_bf16bf16f32>(problem);
#else
  static_cast<void>(problem);
#endif
}

GemmBackend gemm_backend(DType dtype, Products products) {
  if (dtype == DType::F64) {
    return {.library = name(chosen(f64_library(), products)), .operands = DType::F64};
  }
  if (dtype == DType::BF16 && products == Products::Libraries && multiplies_bf16()) {
    return {.library = name(Library::OneDnn), .operands = DType::BF16};
  }
  return {.library = name(chosen(f32_library(), products)), .operands = DType::F32};
}

}  // namespace harpe
