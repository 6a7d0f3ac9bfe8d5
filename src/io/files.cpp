#include "io/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

namespace harpe {
namespace {

namespace fs = std::filesystem;

Diag cannot_write(const std::string& path, const std::string& reason) {
  return make_diag(DiagCode::I102, {{"path", path}, {"reason", reason}});
}

std::string reason_of(int error) { return std::strerror(error); }

struct Destination {
  std::string path;       // with links followed
  bool in_place = false;  // a device or a pipe, which cannot be replaced by a rename
};

// Absolute, with links followed, even to a missing file.
fs::path follow(const std::string& path) {
  constexpr int kMostLinks = 40;  // the system's limit
  std::error_code error;
  fs::path at = fs::absolute(path, error);
  if (error) return path;
  for (int links = 0; links < kMostLinks; ++links) {
    if (fs::exists(at, error) || !fs::is_symlink(at, error)) break;
    const fs::path to = fs::read_symlink(at, error);
    if (error) break;
    at = to.is_absolute() ? to : at.parent_path() / to;
  }
  const fs::path whole = fs::weakly_canonical(at, error);
  return error ? at : whole;
}

Checked<Destination> resolve(const std::string& path) {
  if (path.empty()) return cannot_write(path, "the name is empty");
  Destination destination{.path = follow(path).string()};
  struct stat status{};
  if (::stat(destination.path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return cannot_write(path, "it is a folder");
    destination.in_place = !S_ISREG(status.st_mode);
    if (::access(destination.path.c_str(), W_OK) != 0) return cannot_write(path, reason_of(errno));
  }
  return destination;
}

}  // namespace

Checked<AtomicFile> AtomicFile::open(const std::string& path) {
  HP_TRY(const Destination destination, resolve(path));
  AtomicFile out;
  out.shown_ = path;
  out.target_ = destination.path;
  if (destination.in_place) {
    out.file_.reset(std::fopen(destination.path.c_str(), "wb"));
    if (!out.file_) return cannot_write(path, reason_of(errno));
    return out;
  }
  std::string name = destination.path + ".XXXXXX";
  const int descriptor = ::mkstemp(name.data());
  if (descriptor < 0) return cannot_write(path, reason_of(errno));
  out.temporary_ = name;
  // mkstemp creates files with mode 0600; a result gets the permissions of any new file.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(descriptor, 0666 & ~mask);
  out.file_.reset(::fdopen(descriptor, "wb"));
  if (!out.file_) {
    const int error = errno;
    ::close(descriptor);
    return cannot_write(path, reason_of(error));
  }
  return out;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : file_(std::move(other.file_)),
      shown_(std::move(other.shown_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})) {}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Diag AtomicFile::failed(int error) const { return cannot_write(shown_, reason_of(error)); }

Checked<Ok> AtomicFile::write(std::span<const std::byte> bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) return failed(errno);
  return Ok{};
}

Checked<Ok> AtomicFile::write(std::string_view text) {
  return write(std::as_bytes(std::span(text.data(), text.size())));
}

Checked<Ok> AtomicFile::commit() {
  // A full disk may be reported only here.
  if (std::fclose(file_.release()) != 0) return failed(errno);
  if (temporary_.empty()) return Ok{};
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) return failed(errno);
  temporary_.clear();
  return Ok{};
}

Checked<Ok> check_writable(const std::string& path) {
  HP_TRY(const Destination destination, resolve(path));
  if (destination.in_place) return Ok{};
  HP_TRY(const AtomicFile probe, AtomicFile::open(path));
  return Ok{};
}

Checked<Ok> check_output_files(std::span<const OutputFile> files) {
  std::map<std::string, std::string> places;
  for (const OutputFile& file : files) {
    HP_TRY(const Destination destination, resolve(file.path));
    const auto [first, is_new] = places.emplace(destination.path, file.what);
    if (!is_new && !destination.in_place) {
      return make_diag(DiagCode::U118,
                       {{"first", first->second}, {"second", file.what}, {"path", file.path}});
    }
  }
  for (const OutputFile& file : files) HP_REQUIRE_OK(check_writable(file.path));
  return Ok{};
}

Checked<Ok> write_text(const std::string& path, std::string_view text) {
  HP_TRY(AtomicFile file, AtomicFile::open(path));
  HP_REQUIRE_OK(file.write(text));
  return file.commit();
}

Checked<Ok> append_text(const std::string& path, std::string_view text) {
  std::FILE* const file = std::fopen(path.c_str(), "ab");
  if (file == nullptr) return cannot_write(path, reason_of(errno));
  const bool is_written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int error = errno;
  if (std::fclose(file) != 0) return cannot_write(path, reason_of(errno));
  if (!is_written) return cannot_write(path, reason_of(error));
  return Ok{};
}

}  // namespace harpe
