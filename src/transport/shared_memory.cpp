#include "transport/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "support/limits.h"

namespace harpe::transport {
namespace {

Diag failed(const std::string& call, const std::string& reason) {
  return make_diag(DiagCode::N002, {{"provider", "shared"}, {"call", call}, {"reason", reason}});
}
Diag failed(const std::string& call, int number) {
  if (is_out_of_files(number)) return no_more(Limited::Files, number);
  return failed(call, std::strerror(number));
}

}  // namespace

Checked<SharedMemory> SharedMemory::make(std::int64_t bytes) {
  const int file = ::memfd_create("harpe", MFD_CLOEXEC);
  if (file < 0) return failed("memfd_create", errno);
  if (::ftruncate(file, bytes) != 0) {
    const int number = errno;
    ::close(file);
    return failed("ftruncate to " + std::to_string(bytes), number);
  }
  return map(file, bytes);
}

Checked<SharedMemory> SharedMemory::open(std::int64_t process, int file, std::int64_t bytes) {
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(file);
  const int opened = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (opened < 0) return failed("open " + path, errno);
  // Accessing a mapping beyond its file's end would raise SIGBUS.
  struct stat facts{};
  if (::fstat(opened, &facts) != 0 || facts.st_size < bytes) {
    ::close(opened);
    return failed("open " + path, "it has " + std::to_string(facts.st_size) + " bytes, not " +
                                      std::to_string(bytes));
  }
  HP_TRY(SharedMemory memory, map(opened, bytes));
  // A mapping needs no file; the owner keeps its own open, by which others find it.
  ::close(std::exchange(memory.file_, -1));
  return memory;
}

Checked<SharedMemory> SharedMemory::map(int file, std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  void* const at =
      size == 0 ? nullptr : ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) {
    const int number = errno;
    ::close(file);
    return failed("mmap of " + std::to_string(bytes), number);
  }
  return SharedMemory(file, {static_cast<std::byte*>(at), size});
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : file_(std::exchange(other.file_, -1)), bytes_(std::exchange(other.bytes_, {})) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
  if (file_ >= 0) ::close(file_);
}

}  // namespace harpe::transport
