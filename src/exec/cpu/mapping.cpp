#include "exec/cpu/mapping.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>

namespace harpe::cpu {

Mapping::Mapping(std::int64_t bytes, int protection)
    : bytes_(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1))) {
  void* const at =
      ::mmap(nullptr, bytes_, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(at);
}

Mapping Mapping::memory(std::int64_t bytes) { return {bytes, PROT_READ | PROT_WRITE}; }
Mapping Mapping::addresses(std::int64_t bytes) { return {bytes, PROT_NONE}; }

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

}  // namespace harpe::cpu
