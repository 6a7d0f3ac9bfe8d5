#include "bench/cuda/gpu.h"

#include <optional>

#include "bench/cuda/must.h"

namespace harpe::bench {
namespace {

std::optional<std::string> unless_empty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

std::unique_ptr<cuda::KernelLibrary> open_library(int ordinal, const Options& options) {
  auto device = must(cuda::Device::open(must(cuda::open_driver()), cuda::DeviceId(ordinal)));
  return std::make_unique<cuda::KernelLibrary>(std::move(device), open_compiler(options),
                                               unless_empty(options.cache));
}

}  // namespace

cuda::Nvrtc open_compiler(const Options& options) {
  const std::vector<std::string> folders = {"/usr/local/cuda/lib64"};
  return must(cuda::Nvrtc::open(unless_empty(options.nvrtc), folders));
}

Gpu::Gpu(int ordinal, const Options& options)
    : library_(open_library(ordinal, options)), driver_(&device().driver()) {}

int Gpu::count() { return must(cuda::count_devices(*must(cuda::open_driver()))); }

void Gpu::call(const char* name, CUresult status) const {
  must(cuda::driver_call(*driver_, name, status));
}

void Gpu::enter() const { must(device().make_current()); }

void Gpu::reach(const Gpu& peer) const {
  must(device().reach(peer.device()));
  enter();
}

cuda::DeviceMemory Gpu::memory(std::int64_t bytes) const {
  return must(cuda::DeviceMemory::allocate(device(), bytes));
}

cuda::MappedMemory Gpu::host_memory(std::int64_t bytes) const {
  return must(cuda::MappedMemory::allocate(device(), bytes));
}

CUstream Gpu::new_stream() {
  return streams_.emplace_back(must(cuda::Stream::create(device()))).handle();
}

CUevent Gpu::new_event() {
  return events_.emplace_back(must(cuda::Event::create(device()))).handle();
}

void Gpu::record(CUevent event, CUstream stream) const {
  call("cuEventRecord", driver_->cuEventRecord(event, stream));
}

void Gpu::wait_for(CUstream stream, CUevent event) const {
  call("cuStreamWaitEvent", driver_->cuStreamWaitEvent(stream, event, CU_EVENT_WAIT_DEFAULT));
}

double Gpu::elapsed_us(CUevent from, CUevent to) const {
  float milliseconds = 0;
  call("cuEventElapsedTime", driver_->cuEventElapsedTime(&milliseconds, from, to));
  return static_cast<double>(milliseconds) * 1e3;
}

void Gpu::synchronise(CUstream stream) const {
  call("cuStreamSynchronize", driver_->cuStreamSynchronize(stream));
}

void Gpu::fill_bytes(Address to, std::uint8_t value, std::int64_t bytes, CUstream stream) const {
  call("cuMemsetD8Async",
       driver_->cuMemsetD8Async(to, value, static_cast<std::size_t>(bytes), stream));
}

void Gpu::fill_words(Address to, std::uint32_t value, std::int64_t words, CUstream stream) const {
  call("cuMemsetD32Async",
       driver_->cuMemsetD32Async(to, value, static_cast<std::size_t>(words), stream));
}

void Gpu::copy(Address to, Address from, std::int64_t bytes, CUstream stream) const {
  call("cuMemcpyAsync", driver_->cuMemcpyAsync(to, from, static_cast<std::size_t>(bytes), stream));
}

void Gpu::copy_rows(const RowCopy& rows, CUstream stream) const {
  if (rows.rows == 1 || (rows.to_stride == rows.row_bytes && rows.from_stride == rows.row_bytes)) {
    copy(rows.to, rows.from, rows.rows * rows.row_bytes, stream);
    return;
  }
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcDevice = rows.from;
  copy.srcPitch = static_cast<std::size_t>(rows.from_stride);
  copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.dstDevice = rows.to;
  copy.dstPitch = static_cast<std::size_t>(rows.to_stride);
  copy.WidthInBytes = static_cast<std::size_t>(rows.row_bytes);
  copy.Height = static_cast<std::size_t>(rows.rows);
  call("cuMemcpy2DAsync", driver_->cuMemcpy2DAsync(&copy, stream));
}

void Gpu::write_word(Address to, std::uint32_t value, CUstream stream) const {
  call("cuStreamWriteValue32",
       driver_->cuStreamWriteValue32(stream, to, value, CU_STREAM_WRITE_VALUE_DEFAULT));
}

void Gpu::wait_for_word(Address word, std::uint32_t value, CUstream stream) const {
  call("cuStreamWaitValue32",
       driver_->cuStreamWaitValue32(stream, word, value, CU_STREAM_WAIT_VALUE_GEQ));
}

void Gpu::launch_bytes(const cuda::KernelVariant& kernel, Grid grid, const void* args,
                       CUstream stream) const {
  const cuda::LoadedKernel* const loaded = must(library_->load(kernel));
  must(cuda::launch_bytes(*driver_, *loaded,
                          {.grid = {grid.x, grid.y, grid.z}, .cluster = {1, 1, 1}}, stream, args));
}

}  // namespace harpe::bench
