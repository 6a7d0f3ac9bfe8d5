#pragma once

#include <cuda.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "bench/cuda/options.h"
#include "exec/cuda/jit/kernel_library.h"
#include "exec/cuda/runtime/device_memory.h"

namespace harpe::bench {

using Address = cuda::DeviceAddress;

// A pointer to an address, in GPU memory for kernels' arguments or in host memory to read.
template <class T>
[[nodiscard]] T* at(Address address) {
  return reinterpret_cast<T*>(address);
}

// Rows of bytes copied from one place to another.
struct RowCopy {
  Address to = 0;
  std::int64_t to_stride = 0;
  Address from = 0;
  std::int64_t from_stride = 0;
  std::int64_t row_bytes = 0;
  std::int64_t rows = 1;
};

[[nodiscard]] cuda::Nvrtc open_compiler(const Options& options);

struct Grid {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;
};

// One GPU of the harness. A failing driver call ends the program (exit code 3), because the harness
// cannot report a fault to a caller. All methods except `synchronise` and `elapsed_us` only
// enqueue. Host memory is pinned and has the same address everywhere.
class Gpu {
 public:
  Gpu(int ordinal, const Options& options);
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  [[nodiscard]] static int count();

  [[nodiscard]] const cuda::Device& device() const { return library_->device(); }
  [[nodiscard]] cuda::KernelLibrary& library() const { return *library_; }
  [[nodiscard]] int processors() const { return device().facts().multiprocessors; }
  // Makes this GPU current, for calls without a stream.
  void enter() const;
  // Lets kernels on this GPU access the peer's memory.
  void reach(const Gpu& peer) const;

  [[nodiscard]] cuda::DeviceMemory memory(std::int64_t bytes) const;
  [[nodiscard]] cuda::MappedMemory host_memory(std::int64_t bytes) const;

  // Streams and events live as long as this GPU.
  [[nodiscard]] CUstream new_stream();
  [[nodiscard]] CUevent new_event();
  void record(CUevent event, CUstream stream) const;
  void wait_for(CUstream stream, CUevent event) const;
  [[nodiscard]] double elapsed_us(CUevent from, CUevent to) const;
  void synchronise(CUstream stream) const;

  void fill_bytes(Address to, std::uint8_t value, std::int64_t bytes, CUstream stream) const;
  void fill_words(Address to, std::uint32_t value, std::int64_t words, CUstream stream) const;
  void copy(Address to, Address from, std::int64_t bytes, CUstream stream) const;
  void copy_rows(const RowCopy& rows, CUstream stream) const;
  // Writes after all earlier work in the stream is visible to the whole system.
  void write_word(Address to, std::uint32_t value, CUstream stream) const;
  // Holds the stream until the memory cell is at least `value`, compared as a difference of 32
  // bits.
  void wait_for_word(Address word, std::uint32_t value, CUstream stream) const;

  // Launches one of the harness' own kernels, compiled at its first use.
  template <class Args>
  void launch(const cuda::KernelVariant& kernel, Grid grid, const Args& args,
              CUstream stream) const {
    launch_bytes(kernel, grid, &args, stream);
  }

 private:
  void launch_bytes(const cuda::KernelVariant& kernel, Grid grid, const void* args,
                    CUstream stream) const;
  void call(const char* name, CUresult status) const;

  std::unique_ptr<cuda::KernelLibrary> library_;
  const cuda::DriverApi* driver_;
  std::deque<cuda::Stream> streams_;
  std::deque<cuda::Event> events_;
};

}  // namespace harpe::bench
