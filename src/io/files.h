#pragma once

#include <cstddef>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "support/diag.h"

namespace harpe {

// Checks that `path` can be written: its folder accepts a new file, and the path is not a folder.
// Leaves no trace. Errors: I102.
[[nodiscard]] Checked<Ok> check_writable(const std::string& path);

// A file that a command writes, and the option that names it: "cache export".
struct OutputFile {
  std::string what;
  std::string path;
};
// Checks all output files before there is a result: each can be written, and no two are the same
// except devices and pipes. Errors: U118, I102.
[[nodiscard]] Checked<Ok> check_output_files(std::span<const OutputFile> files);

// A file that appears whole or not at all: it is written beside its final place, and `commit`
// renames it. An existing device or pipe is written in place. Without `commit` nothing is left
// behind.
class AtomicFile {
 public:
  // Errors: I102, here and below.
  [[nodiscard]] static Checked<AtomicFile> open(const std::string& path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) = delete;
  ~AtomicFile();

  [[nodiscard]] Checked<Ok> write(std::span<const std::byte> bytes);
  [[nodiscard]] Checked<Ok> write(std::string_view text);
  [[nodiscard]] Checked<Ok> commit();

 private:
  AtomicFile() = default;
  [[nodiscard]] Diag failed(int error) const;

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
  std::string shown_;      // as the user wrote it
  std::string target_;     // with links followed
  std::string temporary_;  // "" when written in place, or committed
};

[[nodiscard]] Checked<Ok> write_text(const std::string& path, std::string_view text);
// Appends to the file, which is created if it is missing. Errors: I102.
[[nodiscard]] Checked<Ok> append_text(const std::string& path, std::string_view text);

}  // namespace harpe
