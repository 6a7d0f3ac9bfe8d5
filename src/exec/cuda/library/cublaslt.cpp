#include "exec/cuda/library/cublaslt.h"

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#define HARPE_WITH_CUBLASLT
#endif

#include <array>
#include <optional>

namespace harpe::library {

#ifdef HARPE_WITH_CUBLASLT

namespace {

constexpr int kMostAlgorithms = 16;

// The used functions, with the library's own declarations.
struct Functions {
#define HP_CUBLASLT(FUNCTION) decltype(&::FUNCTION) FUNCTION = nullptr;
#include "exec/cuda/library/cublaslt.def"
#undef HP_CUBLASLT
};

Checked<Functions> find_functions(const cuda::Library& library) {
  Functions functions;
#define HP_CUBLASLT(FUNCTION)                                                     \
  {                                                                               \
    HP_TRY(void* const address, library.find(#FUNCTION));                         \
    functions.FUNCTION = reinterpret_cast<decltype(functions.FUNCTION)>(address); \
  }
#include "exec/cuda/library/cublaslt.def"
#undef HP_CUBLASLT
  return functions;
}

cudaDataType_t data_type(device::Element element) {
  if (element == device::Element::F32) return CUDA_R_32F;
  return element == device::Element::F16 ? CUDA_R_16F : CUDA_R_16BF;
}

std::string status_text(cublasStatus_t status) {
  return "cuBLASLt refused with status " + std::to_string(static_cast<int>(status));
}

}  // namespace

struct CublasLtState {
  cuda::Library library;
  Functions functions;
  cublasLtHandle_t handle = nullptr;

  CublasLtState(cuda::Library opened, const Functions& found)
      : library(std::move(opened)), functions(found) {}
  CublasLtState(const CublasLtState&) = delete;
  CublasLtState& operator=(const CublasLtState&) = delete;
  ~CublasLtState() {
    if (handle != nullptr) functions.cublasLtDestroy(handle);
  }
};

namespace {

// Row-major C = A B is column-major C' = B' A': cuBLASLt's first operand is our B.
class Gemm final : public LibraryGemm {
 public:
  Gemm(std::shared_ptr<const CublasLtState> state, const Workspace& workspace)
      : state_(std::move(state)), workspace_(workspace) {}
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;
  ~Gemm() override {
    const Functions& call = state_->functions;
    for (cublasLtMatrixLayout_t layout : {a_, b_, c_}) {
      if (layout != nullptr) call.cublasLtMatrixLayoutDestroy(layout);
    }
    if (operation_ != nullptr) call.cublasLtMatmulDescDestroy(operation_);
  }

  [[nodiscard]] cublasStatus_t describe(const LibraryGemmShape& shape) {
    const Functions& call = state_->functions;
    beta_ = shape.add ? 1 : 0;
    const auto unsigned_of = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
    const bool transposed = shape.layout == device::GemmLayout::KMajor;
    const cublasOperation_t of_b = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t of_a = shape.m_major ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasStatus_t status =
        call.cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    status = call.cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_TRANSA, &of_b,
                                                 sizeof(of_b));
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    status = call.cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_TRANSB, &of_a,
                                                 sizeof(of_a));
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    status = call.cublasLtMatrixLayoutCreate(
        &b_, data_type(shape.in), unsigned_of(transposed ? shape.k : shape.n),
        unsigned_of(transposed ? shape.n : shape.k), shape.b_stride);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    status = call.cublasLtMatrixLayoutCreate(
        &a_, data_type(shape.in), unsigned_of(shape.m_major ? shape.m : shape.k),
        unsigned_of(shape.m_major ? shape.k : shape.m), shape.a_stride);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    return call.cublasLtMatrixLayoutCreate(&c_, data_type(shape.out), unsigned_of(shape.n),
                                           unsigned_of(shape.m), shape.c_stride);
  }

  [[nodiscard]] cublasStatus_t ask_heuristics() {
    const Functions& call = state_->functions;
    cublasLtMatmulPreference_t preference = nullptr;
    cublasStatus_t status = call.cublasLtMatmulPreferenceCreate(&preference);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    const auto bytes = static_cast<std::size_t>(workspace_.bytes);
    status = call.cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof(bytes));
    if (status == CUBLAS_STATUS_SUCCESS) {
      status =
          call.cublasLtMatmulAlgoGetHeuristic(state_->handle, operation_, b_, a_, c_, c_,
                                              preference, kMostAlgorithms, found_.data(), &count_);
    }
    call.cublasLtMatmulPreferenceDestroy(preference);
    return status;
  }

  [[nodiscard]] int algorithms() const override { return count_; }

  [[nodiscard]] bool launch(int algorithm, std::uint64_t a, std::uint64_t b, std::uint64_t c,
                            void* stream) const override {
    const float one = 1;
    const auto& algo = found_[static_cast<std::size_t>(algorithm)].algo;
    void* const out = reinterpret_cast<void*>(c);
    return state_->functions.cublasLtMatmul(
               state_->handle, operation_, &one, reinterpret_cast<const void*>(b), b_,
               reinterpret_cast<const void*>(a), a_, &beta_, out, c_, out, c_, &algo,
               reinterpret_cast<void*>(workspace_.address),
               static_cast<std::size_t>(workspace_.bytes),
               static_cast<cudaStream_t>(stream)) == CUBLAS_STATUS_SUCCESS;
  }

 private:
  std::shared_ptr<const CublasLtState> state_;
  Workspace workspace_;
  float beta_ = 0;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr;
  cublasLtMatrixLayout_t b_ = nullptr;
  cublasLtMatrixLayout_t c_ = nullptr;
  std::array<cublasLtMatmulHeuristicResult_t, kMostAlgorithms> found_{};
  int count_ = 0;
};

}  // namespace

Result<CublasLt, Missing> CublasLt::open(const Search& search, const Workspace& workspace) {
  auto library = open_library(wanted_cublaslt(), search);
  if (!library.ok()) return Missing{render_message(library.error())};
  const Checked<Functions> functions = find_functions(*library);
  if (!functions.ok()) return Missing{render_message(functions.error())};
  auto state = std::make_shared<CublasLtState>(std::move(library).value(), *functions);
  if (const auto status = state->functions.cublasLtCreate(&state->handle);
      status != CUBLAS_STATUS_SUCCESS) {
    return Missing{status_text(status)};
  }
  CublasLt opened;
  opened.state_ = std::move(state);
  opened.workspace_ = workspace;
  return opened;
}

Result<std::unique_ptr<LibraryGemm>, Missing> CublasLt::prepare(
    const LibraryGemmShape& shape) const {
  auto gemm = std::make_unique<Gemm>(state_, workspace_);
  if (const auto status = gemm->describe(shape); status != CUBLAS_STATUS_SUCCESS) {
    return Missing{status_text(status)};
  }
  if (const auto status = gemm->ask_heuristics(); status != CUBLAS_STATUS_SUCCESS) {
    return Missing{status_text(status)};
  }
  return std::unique_ptr<LibraryGemm>(std::move(gemm));
}

std::string CublasLt::version() const {
  const std::size_t number = state_->functions.cublasLtGetVersion();
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." +
         std::to_string(number % 100);
}

#else

struct CublasLtState {};

namespace {

Missing without_cublaslt() { return Missing{"built without cublasLt.h"}; }

}  // namespace

Result<CublasLt, Missing> CublasLt::open(const Search&, const Workspace&) {
  return without_cublaslt();
}

Result<std::unique_ptr<LibraryGemm>, Missing> CublasLt::prepare(const LibraryGemmShape&) const {
  return without_cublaslt();
}

std::string CublasLt::version() const { return ""; }

#endif

}  // namespace harpe::library
