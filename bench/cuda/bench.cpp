#include "bench/cuda/bench.h"

#include <fmt/format.h>

namespace harpe::bench {
namespace {

constexpr std::int64_t kWorkspaceBytes = std::int64_t{128} << 20;

}  // namespace

Bench::Bench(const Options& options) : options_(options), report_(options) {
  const int count = Gpu::count();
  gpus_.push_back(std::make_unique<Gpu>(options.device, options));
  if (count > options.device + 1) {
    gpus_.push_back(std::make_unique<Gpu>(options.device + 1, options));
    gpus_[1]->reach(*gpus_[0]);
    gpus_[0]->reach(*gpus_[1]);
  }
  gpu().enter();
  stopwatch_ = std::make_unique<Stopwatch>(gpu());
  const cuda::DeviceFacts& facts = gpu().device().facts();
  report_.note(fmt::format("{} of {} GPUs: {}, {} multiprocessors", gpus_.size(), count, facts.name,
                           facts.multiprocessors));
}

const Result<library::CublasLt, library::Missing>& Bench::cublaslt() {
  if (!cublaslt_) {
    gpu().enter();
    workspace_ = gpu().memory(kWorkspaceBytes);
    cublaslt_ =
        library::CublasLt::open({.file = options_.cublaslt, .folders = {}},
                                {.address = workspace_->address(), .bytes = kWorkspaceBytes});
    report_.note(cublaslt_->ok() ? "cuBLASLt " + (*cublaslt_)->version()
                                 : "no cuBLASLt: " + cublaslt_->error().reason);
  }
  return *cublaslt_;
}

const Result<library::Cudnn, library::Missing>& Bench::cudnn() {
  if (!cudnn_) {
    gpu().enter();
    cudnn_ = library::Cudnn::open({.file = options_.cudnn, .folders = {}});
    report_.note(cudnn_->ok() ? "cuDNN " + (*cudnn_)->version()
                              : "no cuDNN: " + cudnn_->error().reason);
  }
  return *cudnn_;
}

}  // namespace harpe::bench
