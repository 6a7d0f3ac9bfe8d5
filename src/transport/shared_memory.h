#pragma once

#include <cstddef>
#include <span>

#include "transport/provider.h"

namespace harpe::transport {

// Anonymous memory that processes of one machine can map. It is freed with the last of them,
// however they end.
class SharedMemory {
 public:
  // Zeroed. Errors: N002; X018 too many open files.
  [[nodiscard]] static Checked<SharedMemory> make(std::int64_t bytes);
  // Memory of another process of this machine, by its process id and file descriptor. The result
  // keeps no descriptor open. Errors: N002, X018.
  [[nodiscard]] static Checked<SharedMemory> open(std::int64_t process, int file,
                                                  std::int64_t bytes);
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  [[nodiscard]] Region region() const { return {.bytes = bytes_, .file = file_}; }

 private:
  [[nodiscard]] static Checked<SharedMemory> map(int file, std::int64_t bytes);
  SharedMemory(int file, std::span<std::byte> bytes) : file_(file), bytes_(bytes) {}

  int file_ = -1;
  std::span<std::byte> bytes_;
};

}  // namespace harpe::transport
