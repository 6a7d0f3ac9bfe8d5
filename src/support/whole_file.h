#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "support/diag.h"

namespace harpe {

// A file descriptor that closes itself.
class FileDescriptor {
 public:
  explicit FileDescriptor(int value) : value_(value) {}
  FileDescriptor(FileDescriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) = delete;
  ~FileDescriptor();
  [[nodiscard]] int value() const { return value_; }
  // Returns 0 or an errno: over NFS, a write may fail only here.
  int close();

 private:
  int value_;
};

// A file that is read from its beginning. Only regular files are opened: a pipe, device, socket or
// folder, also behind a link, is refused before anything waits for it or reads from it. All files
// that a user or another process names are opened here.
class RegularFile {
 public:
  // Errors: I101, also of `read`.
  [[nodiscard]] static Checked<RegularFile> open(const std::string& path);

  // Unread bytes of those that existed when the file was opened.
  [[nodiscard]] std::int64_t left() const { return left_; }
  // Fills `into`, or as much of it as the file has left. Returns the number of bytes read.
  [[nodiscard]] Checked<std::size_t> read(std::span<std::byte> into);

 private:
  RegularFile(std::string path, FileDescriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  FileDescriptor file_;
  std::int64_t left_ = 0;
};

// The largest text; plans with as many tasks as executors accept are smaller.
constexpr std::int64_t kMostTextBytes = std::int64_t{2} << 30;

// The text of a regular file. Errors: I101, also if it is longer than kMostTextBytes.
[[nodiscard]] Checked<std::string> read_whole(const std::string& path);

// Files in a folder that any number of processes share, also over NFS. There are no locks: a file
// appears whole, by rename, or not at all; of two writers the last one wins.

// The prefix of a file's name while it is being written.
constexpr std::string_view kUnfinishedPrefix = ".writing-";

// The file is flushed to storage before it gets its name. Creates the folder if it is missing.
// Errors: I102.
[[nodiscard]] Checked<Ok> write_whole(const std::string& folder, const std::string& name,
                                      std::string_view text);

}  // namespace harpe
