#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "bench/cuda/gpu.h"
#include "bench/cuda/options.h"
#include "bench/cuda/report.h"
#include "bench/cuda/timing.h"
#include "exec/cuda/library/cublaslt.h"
#include "exec/cuda/library/cudnn.h"

namespace harpe::bench {

// The environment of an experiment.
class Bench {
 public:
  explicit Bench(const Options& options);

  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] Report& report() { return report_; }
  [[nodiscard]] Gpu& gpu() { return *gpus_.front(); }
  // The second GPU, if there is one; the two can access each other. Null otherwise.
  [[nodiscard]] Gpu* peer() { return gpus_.size() > 1 ? gpus_[1].get() : nullptr; }
  [[nodiscard]] const Stopwatch& stopwatch() const { return *stopwatch_; }
  // The stream of the stopwatch, for work on the first GPU.
  [[nodiscard]] CUstream stream() const { return stopwatch_->stream(); }
  [[nodiscard]] const Result<library::CublasLt, library::Missing>& cublaslt();
  [[nodiscard]] const Result<library::Cudnn, library::Missing>& cudnn();
  // How often to repeat what is normally done `full` times; fewer times in a quick run.
  [[nodiscard]] int times(int full) const {
    return std::max(1, options_.quick ? (full + 4) / 5 : full);
  }

 private:
  Options options_;
  Report report_;
  std::vector<std::unique_ptr<Gpu>> gpus_;
  std::unique_ptr<Stopwatch> stopwatch_;
  std::optional<cuda::DeviceMemory> workspace_;
  std::optional<Result<library::CublasLt, library::Missing>> cublaslt_;
  std::optional<Result<library::Cudnn, library::Missing>> cudnn_;
};

// An experiment of a kernel family: what `harpe-kernel-bench NAME` runs.
struct Experiment {
  const char* name;
  const char* family;
  const char* help;
  void (*run)(Bench& bench);
};

[[nodiscard]] const std::vector<Experiment>& experiments();

}  // namespace harpe::bench
