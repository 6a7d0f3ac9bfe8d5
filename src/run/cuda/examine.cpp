#include <dlfcn.h>
#include <link.h>

#include <array>

#include "exec/cuda/jit/nvrtc.h"
#include "exec/cuda/library/places.h"
#include "exec/cuda/runtime/current_device.h"
#include "exec/cuda/runtime/device.h"
#include "run/cuda/cuda_gpus.h"
#include "run/doctor.h"

namespace harpe {
namespace {

// Prints major, minor and patch, which are one number with each part below `step`.
std::string print_version(std::int64_t number, std::int64_t step) {
  return std::to_string(number / (step * step)) + "." + std::to_string(number / step % step) + "." +
         std::to_string(number % step);
}

// The file of an open library, by the name that it was opened with.
std::string file_of(const std::string& name) {
  void* const handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD);
  link_map* map = nullptr;
  const bool is_known = handle != nullptr && ::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0;
  return is_known && map->l_name[0] != '\0' ? map->l_name : name;
}

LibraryFacts refused(LibraryFacts facts, const Diag& why) {
  facts.problem = render_message(why);
  facts.tried = why.notes;
  return facts;
}

// A library of which only the version is read.
struct Candidate {
  library::Wanted wanted;
  std::string cost;
  std::string symbol;
  std::string (*version)(void* function);
};

std::string nccl_version(void* function) {
  int version = 0;
  reinterpret_cast<int (*)(int*)>(function)(&version);
  return print_version(version, 100);
}
std::string blas_version(void* function) {
  const auto version = static_cast<std::int64_t>(reinterpret_cast<std::size_t (*)()>(function)());
  return print_version(version, 100);
}
std::string fabric_version(void* function) {
  const std::uint32_t version = reinterpret_cast<std::uint32_t (*)()>(function)();
  return std::to_string(version >> 16) + "." + std::to_string(version & 0xffffU);
}

const std::vector<Candidate>& candidates() {
  static const std::vector<Candidate> kAll = {
      {library::wanted_nccl(),
       "`harpe bench` times no bulk baselines on GPUs, and ranks pull bulk collectives",
       "ncclGetVersion", nccl_version},
      {library::wanted_cublaslt(), "`harpe bench` has no baseline of GEMMs on GPUs",
       "cublasLtGetVersion", blas_version},
      {library::wanted_cudnn(), "`harpe bench` has no baseline of attention on GPUs",
       "cudnnGetVersion", blas_version},
      {{.what = "libfabric", .names = {"libfabric.so.1"}, .remedy = "install libfabric 1"},
       "ranks of several hosts do not reach each other",
       "fi_version",
       fabric_version},
  };
  return kAll;
}

// Searches the same places as baselines.
LibraryFacts examine_library(const Candidate& candidate, const library::Search& search) {
  LibraryFacts facts{.name = candidate.wanted.what,
                     .path = "",
                     .version = "",
                     .problem = std::nullopt,
                     .tried = {},
                     .cost = candidate.cost};
  const Checked<cuda::Library> opened = library::open_library(candidate.wanted, search);
  if (!opened.ok()) return refused(std::move(facts), opened.error());
  facts.path = file_of(opened->path());
  const Checked<void*> function = opened->find(candidate.symbol);
  if (!function.ok()) return refused(std::move(facts), function.error());
  facts.version = candidate.version(*function);
  return facts;
}

// Searches exactly the places of runs.
LibraryFacts examine_compiler(const CudaPlaces& places) {
  LibraryFacts facts{.name = "NVRTC",
                     .path = "",
                     .version = "",
                     .problem = std::nullopt,
                     .tried = {},
                     .cost = std::string(kNoRunsOnGpus)};
  const Checked<cuda::Nvrtc> compiler = cuda::Nvrtc::open(places.nvrtc, places.cuda_folders);
  if (!compiler.ok()) return refused(std::move(facts), compiler.error());
  facts.path = file_of(compiler->path());
  facts.version = compiler->version();
  return facts;
}

// An attribute of a GPU, read without a context; 0 if the driver does not report it.
int attribute(const cuda::DriverApi& driver, CUdevice device, CUdevice_attribute which) {
  int value = 0;
  return driver.cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

GpuFacts examine_gpu(const std::shared_ptr<const cuda::DriverApi>& driver, int id, int count) {
  GpuFacts gpu;
  gpu.id = id;
  CUdevice handle{};
  std::array<char, 256> name{};
  std::size_t memory = 0;
  driver->cuDeviceGet(&handle, id);
  driver->cuDeviceGetName(name.data(), static_cast<int>(name.size()) - 1, handle);
  driver->cuDeviceTotalMem(&memory, handle);
  gpu.name = name.data();
  gpu.memory_bytes = static_cast<std::int64_t>(memory);
  gpu.multiprocessors = attribute(*driver, handle, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  gpu.capability =
      std::to_string(attribute(*driver, handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)) +
      "." +
      std::to_string(attribute(*driver, handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  for (int other = 0; other < count; ++other) {
    CUdevice peer{};
    int can = other == id ? 1 : 0;
    if (other != id && driver->cuDeviceGet(&peer, other) == CUDA_SUCCESS) {
      driver->cuDeviceCanAccessPeer(&can, handle, peer);
    }
    gpu.peers.push_back(can != 0);
  }
  const Checked<cuda::Device> device = cuda::Device::open(driver, cuda::DeviceId(id));
  if (!device.ok()) {
    gpu.problem = render_message(device.error());
    return gpu;
  }
  const cuda::CurrentDevice current(*device);
  std::size_t free = 0;
  if (driver->cuMemGetInfo(&free, &memory) == CUDA_SUCCESS) {
    gpu.free_bytes = static_cast<std::int64_t>(free);
  }
  return gpu;
}

void examine_gpus(Examination& examination) {
  LibraryFacts facts{.name = "driver",
                     .path = "",
                     .version = "",
                     .problem = std::nullopt,
                     .tried = {},
                     .cost = std::string(kNoRunsOnGpus)};
  const auto driver = cuda::open_driver();
  if (!driver.ok()) {
    examination.libraries.push_back(refused(std::move(facts), driver.error()));
    return;
  }
  facts.path = file_of("libcuda.so.1");
  int version = 0;
  if ((*driver)->cuDriverGetVersion(&version) == CUDA_SUCCESS) {
    facts.version =
        "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  }
  const Checked<int> count = cuda::count_devices(**driver);
  if (!count.ok()) facts.problem = render_message(count.error());
  examination.libraries.push_back(std::move(facts));
  for (int id = 0; count.ok() && id < *count; ++id) {
    examination.gpus.push_back(examine_gpu(*driver, id, *count));
  }
}

}  // namespace

void CudaGpus::examine(const CudaPlaces& places, Examination& examination) const {
  const library::Search search{
      .file = "", .folders = places.library_folders, .toolkits = places.cuda_folders};
  examine_gpus(examination);
  examination.libraries.push_back(examine_compiler(places));
  for (const Candidate& candidate : candidates()) {
    examination.libraries.push_back(examine_library(candidate, search));
  }
}

}  // namespace harpe
