#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exec/cuda/jit/kernel_source.h"
#include "support/diag.h"

namespace harpe::cuda {

// The compiler's output for a kernel.
struct CompiledKernel {
  std::string cubin;
  std::string log;     // of the compiler and of ptxas, with registers and spills
  double seconds = 0;  // CPU time of the compiling thread
  friend bool operator==(const CompiledKernel&, const CompiledKernel&) = default;
};

// The compile options: sm_90a, with ptxas' report in the log.
[[nodiscard]] std::vector<std::string> compile_options();

// The CUDA run-time compiler, found at run time. May be used from several threads at once.
class Nvrtc {
 public:
  // `file` names the library; without it, tries the known names, then the same in `folders`.
  // Errors: G002, G003.
  [[nodiscard]] static Checked<Nvrtc> open(const std::optional<std::string>& file,
                                           std::span<const std::string> folders);

  [[nodiscard]] const std::string& version() const { return version_; }  // "13.0"
  [[nodiscard]] const std::string& path() const { return path_; }        // the library's

  // Errors: G004, with the compiler's log.
  [[nodiscard]] Checked<CompiledKernel> compile(const KernelSource& source,
                                                std::span<const std::string> options) const;

 private:
  struct Functions;
  class Unit;
  Nvrtc() = default;

  std::shared_ptr<const Functions> functions_;
  std::string version_;
  bool keeps_a_cache_ = false;  // NVRTC's own, from 12.9 on
  std::string path_;
};

}  // namespace harpe::cuda
