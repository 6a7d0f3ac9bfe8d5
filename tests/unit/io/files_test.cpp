#include "io/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/scratch.h"

namespace harpe {
namespace {

TEST(AtomicFile, appears_only_when_it_is_committed) {
  const Scratch scratch;
  {
    Checked<AtomicFile> file = AtomicFile::open(scratch.path("a"));
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->write("half").ok());
    EXPECT_FALSE(std::filesystem::exists(scratch.path("a")));
  }
  EXPECT_EQ(scratch.entries(), 0U) << "what was not committed leaves nothing behind";
  ASSERT_TRUE(write_text(scratch.path("a"), "whole").ok());
  EXPECT_EQ(scratch.read("a"), "whole");
  EXPECT_EQ(scratch.entries(), 1U);
}

TEST(AtomicFile, replaces_what_is_there_at_once) {
  const Scratch scratch;
  scratch.write("a", "old");
  {
    Checked<AtomicFile> file = AtomicFile::open(scratch.path("a"));
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->write("new").ok());
    EXPECT_EQ(scratch.read("a"), "old");
    ASSERT_TRUE(file->commit().ok());
  }
  EXPECT_EQ(scratch.read("a"), "new");
}

TEST(AtomicFile, follows_a_link_and_leaves_it_a_link) {
  const Scratch scratch;
  scratch.write("real", "old");
  std::filesystem::create_symlink(scratch.path("real"), scratch.path("link"));
  ASSERT_TRUE(write_text(scratch.path("link"), "new").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(scratch.path("link")));
  EXPECT_EQ(scratch.read("real"), "new");
}

TEST(AtomicFile, follows_a_link_to_what_is_not_there_yet) {
  const Scratch scratch;
  std::filesystem::create_symlink("real", scratch.path("link"));
  ASSERT_TRUE(write_text(scratch.path("link"), "new").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(scratch.path("link")));
  EXPECT_EQ(scratch.read("real"), "new");
}

TEST(OutputFiles, are_refused_where_two_are_one_by_whatever_names) {
  const Scratch scratch;
  std::filesystem::create_symlink("a", scratch.path("link"));
  const auto check = [&](const std::string& first, const std::string& second) {
    return check_output_files(std::vector<OutputFile>{{"--json", first}, {"--trace", second}});
  };
  EXPECT_TRUE(check(scratch.path("a"), scratch.path("b")).ok());
  EXPECT_TRUE(check("/dev/null", "/dev/null").ok());
  for (const std::string& again : {scratch.path("a"), scratch.path("./a"), scratch.path("link")}) {
    const Checked<Ok> refused = check(scratch.path("a"), again);
    ASSERT_FALSE(refused.ok()) << again;
    EXPECT_EQ(refused.error().code, DiagCode::U118);
  }
  EXPECT_EQ(check(scratch.path("a"), scratch.path("no/b")).error().code, DiagCode::I102);
}

TEST(AtomicFile, writes_a_device_in_place) {
  ASSERT_TRUE(write_text("/dev/null", "gone").ok());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null")) << "a device is never replaced";
}

TEST(AtomicFile, has_the_permissions_of_any_new_file) {
  const Scratch scratch;
  ASSERT_TRUE(write_text(scratch.path("a"), "x").ok());
  scratch.write("b", "x");
  struct stat a{};
  struct stat b{};
  ASSERT_EQ(::stat(scratch.path("a").c_str(), &a), 0);
  ASSERT_EQ(::stat(scratch.path("b").c_str(), &b), 0);
  EXPECT_EQ(a.st_mode, b.st_mode);
}

TEST(AtomicFile, reports_a_full_disk) {
  const Checked<Ok> written = write_text("/dev/full", "x");
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(render(written.error()),
            "error[I102]: cannot write `/dev/full`: No space left on device");
}

TEST(CheckWritable, refuses_a_folder_and_a_place_that_is_not_there) {
  const Scratch scratch;
  EXPECT_TRUE(check_writable(scratch.path("new")).ok());
  EXPECT_EQ(scratch.entries(), 0U) << "asking leaves no trace";
  const std::string folder = scratch.path("");
  EXPECT_EQ(render(check_writable(folder).error()),
            "error[I102]: cannot write `" + folder + "`: it is a folder");
  const std::string missing = scratch.path("no/c.npy");
  EXPECT_EQ(render(check_writable(missing).error()),
            "error[I102]: cannot write `" + missing + "`: No such file or directory");
}

}  // namespace
}  // namespace harpe
