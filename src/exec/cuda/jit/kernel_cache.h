#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exec/cuda/jit/nvrtc.h"
#include "support/diag.h"

namespace harpe::cuda {

// Compiled kernels in a folder, one file each (`NAME-KEY.kernel`), shared by any number of
// processes (support/whole_file.h). Damaged entries are compiled again and replaced.

// Identity of a compiled kernel: all source texts, the compile options and the compiler's version.
[[nodiscard]] std::string kernel_key(const KernelSource& source,
                                     std::span<const std::string> options,
                                     std::string_view compiler_version);

// The file's text: header lines, then the log and the cubin verbatim.
[[nodiscard]] std::string print_kernel_entry(const CompiledKernel& kernel, std::string_view key);
// `path` is for messages. Errors: G011.
[[nodiscard]] Checked<CompiledKernel> parse_kernel_entry(std::string_view text,
                                                         std::string_view key,
                                                         const std::string& path);

enum class CacheUse : std::uint8_t {
  Off,       // compiled; there is no folder
  Hit,       // not compiled
  Stored,    // compiled and stored
  Replaced,  // compiled and stored in place of a damaged entry
  NotKept,   // compiled; the folder is not writable
};
[[nodiscard]] std::string_view print(CacheUse use);

struct CachedKernel {
  CompiledKernel kernel;
  CacheUse use = CacheUse::Off;
  std::vector<Diag> problems;  // G011, I101, I102: to be reported as warnings
};

// From the folder, or from `compile`, which is called at most once. Without a folder nothing is
// read or stored. Errors: those of `compile` only.
[[nodiscard]] Checked<CachedKernel> get_kernel(
    const std::optional<std::string>& folder, std::string_view name, std::string_view key,
    const std::function<Checked<CompiledKernel>()>& compile);

// Called before a kernel is compiled, which takes seconds.
using CompileNotice = std::function<void(std::string_view kernel)>;

// Reads a variant from the folder or compiles it, without a GPU. Errors: G004, G010.
[[nodiscard]] Checked<CachedKernel> compile_variant(const Nvrtc& compiler,
                                                    const std::optional<std::string>& cache,
                                                    const KernelVariant& variant,
                                                    std::span<const HeaderText> headers,
                                                    const CompileNotice& notice = {});

}  // namespace harpe::cuda
