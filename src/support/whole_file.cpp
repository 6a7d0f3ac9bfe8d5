#include "support/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <random>

namespace harpe {
namespace {

Diag cannot(DiagCode code, const std::string& path, int error) {
  return make_diag(code, {{"path", path}, {"reason", std::strerror(error)}});
}

Diag cannot_read(const std::string& path, const std::string& reason) {
  return make_diag(DiagCode::I101, {{"path", path}, {"reason", reason}});
}

// The kind of a file that is not regular.
std::string kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

int write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(file, text.data(), text.size());
    if (put < 0 && errno != EINTR) return errno;
    if (put > 0) text.remove_prefix(static_cast<std::size_t>(put));
  }
  return 0;
}

// A name in `folder` that no other writer on any host uses: 64 random bits.
std::string unfinished_name(const std::string& folder) {
  std::random_device random;
  const std::uint64_t bits = (std::uint64_t{random()} << 32) | random();
  return folder + "/" + std::string(kUnfinishedPrefix) + std::to_string(bits);
}

// Writes the whole text, flushes it to storage, then renames the file. On failure no file is added.
int write_and_rename(const std::string& folder, const std::string& path, std::string_view text) {
  const std::string temporary = unfinished_name(folder);
  FileDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.value() < 0) return errno;
  int error = write_all(file.value(), text);
  if (error == 0 && ::fsync(file.value()) != 0) error = errno;
  if (const int late = file.close(); error == 0) error = late;
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(temporary.c_str());
    return error;
  }
  // Keeps the name too. If a folder cannot be flushed, a power failure may lose the entry.
  const FileDescriptor parent(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (parent.value() >= 0) ::fsync(parent.value());
  return 0;
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (value_ >= 0) ::close(value_);
}

int FileDescriptor::close() { return ::close(std::exchange(value_, -1)) == 0 ? 0 : errno; }

Checked<RegularFile> RegularFile::open(const std::string& path) {
  // Without O_NONBLOCK, opening a pipe waits for its writer.
  RegularFile file(
      path, FileDescriptor(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)));
  if (file.file_.value() < 0) return cannot(DiagCode::I101, path, errno);
  struct stat status{};
  if (::fstat(file.file_.value(), &status) != 0) return cannot(DiagCode::I101, path, errno);
  if (!S_ISREG(status.st_mode)) {
    return cannot_read(path, "it is " + kind_of(status.st_mode) + ", not a regular file");
  }
  file.left_ = status.st_size;
  return file;
}

Checked<std::size_t> RegularFile::read(std::span<std::byte> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = ::read(file_.value(), into.data() + done, into.size() - done);
    if (got == 0) break;
    if (got > 0) done += static_cast<std::size_t>(got);
    if (got < 0 && errno != EINTR) return cannot(DiagCode::I101, path_, errno);
  }
  left_ = std::max<std::int64_t>(left_ - static_cast<std::int64_t>(done), 0);
  return done;
}

Checked<std::string> read_whole(const std::string& path) {
  HP_TRY(RegularFile file, RegularFile::open(path));
  constexpr std::size_t kAtOnce = 65536;
  std::string text;
  std::int64_t size = file.left();
  while (size <= kMostTextBytes) {
    const std::size_t before = text.size();
    text.resize(std::max(static_cast<std::size_t>(size), before) + kAtOnce);
    HP_TRY(const std::size_t got,
           file.read(std::as_writable_bytes(std::span(text)).subspan(before)));
    text.resize(before + got);
    // Files of /proc report a size of 0, and other files may have grown.
    size = std::ssize(text);
    if (got == 0) return text;
  }
  return cannot_read(path, "it is " + std::to_string(size) +
                               " bytes long, and a text has at most " +
                               std::to_string(kMostTextBytes));
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
