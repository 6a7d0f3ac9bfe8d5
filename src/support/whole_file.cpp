#include "support/whole_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <random>
#include <utility>

namespace harpe {
namespace {

Diag cannot(DiagCode code, const std::string& path, int error) {
  return make_diag(code, {{"path", path}, {"reason", std::strerror(error)}});
}

// A descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  [[nodiscard]] int value() const { return value_; }
  // 0, or what went wrong: over NFS, writing may fail only here.
  int close() { return ::close(std::exchange(value_, -1)) == 0 ? 0 : errno; }

 private:
  int value_;
};

int write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(file, text.data(), text.size());
    if (put < 0 && errno != EINTR) return errno;
    if (put > 0) text.remove_prefix(static_cast<std::size_t>(put));
  }
  return 0;
}

// A name in `folder` that no other writer takes, on any host: 64 random bits.
std::string unfinished_name(const std::string& folder) {
  std::random_device random;
  const std::uint64_t bits = (std::uint64_t{random()} << 32) | random();
  return folder + "/" + std::string(kUnfinishedPrefix) + std::to_string(bits);
}

// Whole, flushed to where the file is kept, then renamed; or 0 files more than before.
int write_and_rename(const std::string& folder, const std::string& path, std::string_view text) {
  const std::string temporary = unfinished_name(folder);
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.value() < 0) return errno;
  int error = write_all(file.value(), text);
  if (error == 0 && ::fsync(file.value()) != 0) error = errno;
  if (const int late = file.close(); error == 0) error = late;
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(temporary.c_str());
    return error;
  }
  // The name is kept too. Where a folder cannot be flushed, the entry may be lost with the power.
  const Descriptor parent(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (parent.value() >= 0) ::fsync(parent.value());
  return 0;
}

}  // namespace

Checked<std::string> read_whole(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.value() < 0) return cannot(DiagCode::I101, path, errno);
  std::string text;
  std::array<char, 65536> buffer{};
  while (true) {
    const ssize_t got = ::read(file.value(), buffer.data(), buffer.size());
    if (got == 0) return text;
    if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) return cannot(DiagCode::I101, path, errno);
  }
}

Checked<Ok> write_whole(const std::string& folder, const std::string& name, std::string_view text) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return cannot(DiagCode::I102, folder, error.value());
  const std::string path = folder + "/" + name;
  if (const int failed = write_and_rename(folder, path, text); failed != 0) {
    return cannot(DiagCode::I102, path, failed);
  }
  return Ok{};
}

}  // namespace harpe
