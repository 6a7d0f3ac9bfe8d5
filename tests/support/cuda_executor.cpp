#include "tests/support/cuda_executor.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "exec/cuda/jit/nvrtc.h"

namespace harpe::test {
namespace {

const std::vector<std::string> kFolders = {"/usr/local/cuda/lib64"};

// The folder of compiled kernels; a temporary one is removed at the end.
class KernelFolder {
 public:
  KernelFolder() {
    if (const char* const named = std::getenv("HARPE_TEST_KERNEL_CACHE"); named != nullptr) {
      path_ = named;
      return;
    }
    path_ = (std::filesystem::temp_directory_path() / "harpe-kernels-XXXXXX").string();
    if (::mkdtemp(path_.data()) != nullptr) is_own_ = true;
  }
  KernelFolder(const KernelFolder&) = delete;
  KernelFolder& operator=(const KernelFolder&) = delete;
  ~KernelFolder() {
    std::error_code ignored;
    if (is_own_) std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool is_own_ = false;
};

Checked<cuda::Device> open_first() {
  // Ranks that share a GPU need separate hardware queues. The driver reads this variable only once.
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  HP_TRY(const auto driver, cuda::open_driver());
  HP_TRY(const auto compiler, cuda::Nvrtc::open(std::nullopt, kFolders));
  return cuda::Device::open(driver, cuda::DeviceId(0));
}

}  // namespace

const std::string& kernel_folder() {
  static const KernelFolder kernels;
  return kernels.path();
}

Checked<std::unique_ptr<Executor>> make_test_executor(const Plan& plan, CudaOptions options) {
  if (!options.launch) options.divide_gpus = true;
  options.kernel_cache = kernel_folder();
  options.cuda_folders = kFolders;
  return make_cuda_executor(plan, options);
}

std::optional<std::string> missing_for_gpus() {
  static const Checked<cuda::Device> first = open_first();
  if (first.ok()) return std::nullopt;
  return render(first.error());
}

}  // namespace harpe::test
