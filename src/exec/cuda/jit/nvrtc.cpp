#include "exec/cuda/jit/nvrtc.h"

#include <cstddef>
#include <ctime>
#include <type_traits>

#include "exec/cuda/runtime/library.h"

namespace harpe::cuda {

using NvrtcProgram = struct _nvrtcProgram*;

// NVRTC's functions. Their status enumeration is returned as int, its type in C.
struct Nvrtc::Functions {
#define HP_NVRTC(FUNCTION, PARAMETERS) int(*FUNCTION) PARAMETERS = nullptr;
#include "exec/cuda/jit/nvrtc.def"
#undef HP_NVRTC
  const char* (*nvrtcGetErrorString)(int status) = nullptr;
};

namespace {

constexpr int kNvrtcSuccess = 0;

LibraryPlaces nvrtc_places(const std::optional<std::string>& file,
                           std::span<const std::string> folders) {
  LibraryPlaces places{
      .what = "NVRTC, the CUDA run-time compiler,",
      .names = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
      .folders = {folders.begin(), folders.end()},
      .remedy =
          "install CUDA 12 or 13 (the Python package `nvidia-cuda-nvrtc` is enough), or name "
          "the library's place"};
  if (file) {
    places.names = {*file};
    places.folders.clear();
  }
  return places;
}

// CPU time of this thread, which other load on the machine does not change.
double thread_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::vector<const char*> pointers_to(std::span<const std::string> texts) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  return pointers;
}

}  // namespace

// One translation unit inside the compiler.
class Nvrtc::Unit {
 public:
  Unit(const Functions& functions, const KernelSource& source)
      : functions_(functions), name_(source.name) {
    std::vector<std::string> names;
    std::vector<std::string> texts;
    for (const HeaderText& header : source.headers) {
      names.emplace_back(header.name);
      texts.emplace_back(header.text);
    }
    status_ = functions_.nvrtcCreateProgram(&program_, source.text.c_str(), (name_ + ".cu").c_str(),
                                            static_cast<int>(names.size()),
                                            pointers_to(texts).data(), pointers_to(names).data());
  }
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;
  ~Unit() {
    if (program_ != nullptr) functions_.nvrtcDestroyProgram(&program_);
  }

  void compile(std::span<const std::string> options) {
    if (status_ != kNvrtcSuccess) return;
    status_ = functions_.nvrtcCompileProgram(program_, static_cast<int>(options.size()),
                                             pointers_to(options).data());
  }
  [[nodiscard]] std::string log() {
    std::string text = read(functions_.nvrtcGetProgramLogSize, functions_.nvrtcGetProgramLog);
    while (!text.empty() && (text.back() == '\0' || text.back() == '\n')) text.pop_back();
    return text;
  }
  [[nodiscard]] std::string cubin() {
    if (status_ != kNvrtcSuccess) return "";
    return read(functions_.nvrtcGetCUBINSize, functions_.nvrtcGetCUBIN);
  }
  // Why there is no cubin, after `cubin` was called.
  [[nodiscard]] std::optional<Diag> failure(const std::string& log) const {
    if (status_ == kNvrtcSuccess) return std::nullopt;
    Diag diag = make_diag(DiagCode::G004,
                          {{"name", name_}, {"reason", functions_.nvrtcGetErrorString(status_)}});
    return log.empty() ? diag : with_note(std::move(diag), "the compiler says\n" + log);
  }

 private:
  // Reads a text by its length. Keeps the first failure.
  template <class Size, class Get>
  std::string read(Size size, Get get) {
    if (program_ == nullptr) return "";
    std::size_t bytes = 0;
    int status = size(program_, &bytes);
    std::string text(bytes, '\0');
    if (status == kNvrtcSuccess) status = get(program_, text.data());
    if (status_ == kNvrtcSuccess) status_ = status;
    return status == kNvrtcSuccess ? text : "";
  }

  const Functions& functions_;
  std::string name_;
  NvrtcProgram program_ = nullptr;
  int status_ = kNvrtcSuccess;
};

std::vector<std::string> compile_options() {
  return {"--std=c++20", "--gpu-architecture=sm_90a", "--ptxas-options=-v"};
}

Checked<Nvrtc> Nvrtc::open(const std::optional<std::string>& file,
                           std::span<const std::string> folders) {
  HP_TRY(const Library library, Library::open(nvrtc_places(file, folders)));
  Functions functions;
  std::optional<Diag> lacking;  // the first missing function
  const auto find = [&](auto*& function, const char* symbol) {
    const Checked<void*> found = library.find(symbol);
    if (!found.ok() && !lacking) lacking = found.error();
    if (found.ok())
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(*found);
  };
#define HP_NVRTC(FUNCTION, PARAMETERS) find(functions.FUNCTION, #FUNCTION);
#include "exec/cuda/jit/nvrtc.def"
#undef HP_NVRTC
  find(functions.nvrtcGetErrorString, "nvrtcGetErrorString");
  if (lacking) return *lacking;
  int major = 0;
  int minor = 0;
  functions.nvrtcVersion(&major, &minor);
  Nvrtc compiler;
  compiler.functions_ = std::make_shared<const Functions>(functions);
  compiler.version_ = std::to_string(major) + "." + std::to_string(minor);
  compiler.path_ = library.path();
  compiler.keeps_a_cache_ = major > 12 || (major == 12 && minor >= 9);
  return compiler;
}

Checked<CompiledKernel> Nvrtc::compile(const KernelSource& source,
                                       std::span<const std::string> options) const {
  const double start = thread_seconds();
  Unit unit(*functions_, source);
  std::vector<std::string> all(options.begin(), options.end());
  // Results from NVRTC's cache have no log; our own cache keeps it.
  if (keeps_a_cache_) all.emplace_back("--no-cache");
  unit.compile(all);
  CompiledKernel kernel;
  kernel.log = unit.log();
  kernel.cubin = unit.cubin();
  kernel.seconds = thread_seconds() - start;
  if (const std::optional<Diag> failure = unit.failure(kernel.log)) return *failure;
  return kernel;
}

}  // namespace harpe::cuda
