#include "support/whole_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

namespace harpe {
namespace {

// A folder of its own, removed with it.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "harpe-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::string at(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string refusal(const std::string& path) {
  const Checked<std::string> text = read_whole(path);
  return text.ok() ? "" : render(text.error());
}

std::string refused(const std::string& path, const std::string& reason) {
  return "error[I101]: cannot read `" + path + "`: " + reason;
}

TEST(ReadWhole, reads_what_is_there_also_through_a_link) {
  const Folder folder;
  const std::string text = std::string(200'000, 'x') + '\0' + "end\n";
  std::ofstream(folder.at("a")) << text;
  std::filesystem::create_symlink("a", folder.at("link"));
  EXPECT_EQ(*read_whole(folder.at("link")), text);
  std::ofstream(folder.at("empty"));
  EXPECT_EQ(*read_whole(folder.at("empty")), "");
  // System files report a size of 0.
  EXPECT_FALSE(read_whole("/proc/self/status")->empty());
}

// None of these may block: a plain open of the pipe would wait for a writer for ever.
TEST(ReadWhole, refuses_what_is_no_regular_file) {
  const Folder folder;
  EXPECT_EQ(refusal(folder.at("no")), refused(folder.at("no"), "No such file or directory"));
  EXPECT_EQ(refusal(folder.at("")), refused(folder.at(""), "it is a folder, not a regular file"));
  ASSERT_EQ(::mkfifo(folder.at("pipe").c_str(), 0600), 0);
  EXPECT_EQ(refusal(folder.at("pipe")),
            refused(folder.at("pipe"), "it is a pipe, not a regular file"));
  std::filesystem::create_symlink("/dev/zero", folder.at("zero"));
  EXPECT_EQ(refusal(folder.at("zero")),
            refused(folder.at("zero"), "it is a device, not a regular file"));
}

// A pipe with a writer could supply bytes without end.
TEST(ReadWhole, refuses_a_pipe_that_is_being_written) {
  const Folder folder;
  ASSERT_EQ(::mkfifo(folder.at("pipe").c_str(), 0600), 0);
  const FileDescriptor both(::open(folder.at("pipe").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  ASSERT_GE(both.value(), 0);
  ASSERT_EQ(::write(both.value(), "text", 4), 4);
  EXPECT_EQ(refusal(folder.at("pipe")),
            refused(folder.at("pipe"), "it is a pipe, not a regular file"));
}

TEST(ReadWhole, refuses_more_than_a_text_has) {
  const Folder folder;
  std::ofstream(folder.at("a"));
  std::filesystem::resize_file(folder.at("a"), std::uintmax_t{1} << 40);  // a hole
  EXPECT_EQ(
      refusal(folder.at("a")),
      refused(folder.at("a"), "it is 1099511627776 bytes long, and a text has at most 2147483648"));
}

TEST(RegularFile, counts_what_is_left) {
  const Folder folder;
  std::ofstream(folder.at("a")) << "0123456789";
  Checked<RegularFile> file = RegularFile::open(folder.at("a"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->left(), 10);
  std::array<std::byte, 6> bytes{};
  EXPECT_EQ(*file->read(bytes), 6U);
  EXPECT_EQ(file->left(), 4);
  EXPECT_EQ(*file->read(bytes), 4U);
  EXPECT_EQ(file->left(), 0);
  EXPECT_EQ(*file->read(bytes), 0U);
}

}  // namespace
}  // namespace harpe
