#include "exec/cuda/jit/kernel_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace harpe::cuda {
namespace {

namespace fs = std::filesystem;

const CompiledKernel kKernel{
    .cubin = std::string("\x7f\x45\0\n\xff", 5), .log = "ptxas info\nUsed 9", .seconds = 0.25};
constexpr std::string_view kKey = "0123";

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const fs::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

class KernelCache : public testing::Test {
 protected:
  KernelCache() {
    std::string name = (fs::temp_directory_path() / "harpe-kernels-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~KernelCache() override { fs::remove_all(root_); }

  [[nodiscard]] std::string folder() const { return (root_ / "kernels").string(); }
  [[nodiscard]] fs::path entry() const { return root_ / "kernels" / "one-0123.kernel"; }

  // The cache's answer if compiling gives kKernel.
  CachedKernel get() {
    auto result = get_kernel(folder(), "one", kKey, [&]() -> Checked<CompiledKernel> {
      ++compiled_;
      return kKernel;
    });
    EXPECT_TRUE(result.ok());
    EXPECT_EQ(result->kernel, kKernel);
    return *std::move(result);
  }
  // An entry with this text is reported as invalid for this reason and replaced by a valid one.
  void expect_replaced(std::string_view text, std::string_view reason) {
    write(entry(), text);
    const CachedKernel result = get();
    EXPECT_EQ(result.use, CacheUse::Replaced);
    ASSERT_EQ(result.problems.size(), 1U);
    EXPECT_EQ(render(result.problems.front(), "warning"),
              "warning[G011]: `" + entry().string() +
                  "` is no kernel cache entry: " + std::string(reason));
    EXPECT_EQ(get().use, CacheUse::Hit);
  }

  fs::path root_;
  int compiled_ = 0;
};

TEST_F(KernelCache, compiles_once_and_finds_the_same_kernel_again) {
  EXPECT_EQ(get().use, CacheUse::Stored);
  EXPECT_EQ(get().use, CacheUse::Hit);
  EXPECT_EQ(compiled_, 1);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder()), fs::directory_iterator()), 1);
}

TEST_F(KernelCache, replaces_what_is_damaged_and_says_so) {
  get();
  const std::string sound = read(entry());
  std::string flipped = sound;
  flipped.back() = static_cast<char>(flipped.back() ^ 1);
  std::string grown = sound + "x";
  std::string foreign = sound;
  foreign.replace(foreign.find("0123"), 4, "0124");
  constexpr std::string_view kChecksum = "its checksum is not that of its content";
  expect_replaced(flipped, kChecksum);
  expect_replaced(grown, kChecksum);
  expect_replaced(foreign, "it is of another key");
  expect_replaced("", "it does not begin with `harpe kernel 1`");
}

TEST_F(KernelCache, takes_no_entry_that_is_cut_short_anywhere) {
  const std::string sound = print_kernel_entry(kKernel, kKey);
  ASSERT_TRUE(parse_kernel_entry(sound, kKey, "file").ok());
  for (std::size_t length = 0; length < sound.size(); ++length) {
    const auto entry = parse_kernel_entry(sound.substr(0, length), kKey, "file");
    ASSERT_FALSE(entry.ok()) << length;
    EXPECT_EQ(entry.error().code, DiagCode::G011);
  }
}

TEST_F(KernelCache, compiles_though_the_folder_takes_no_file) {
  write(root_ / "kernels", "a file where the folder belongs");
  const CachedKernel result = get();
  EXPECT_EQ(result.use, CacheUse::NotKept);
  ASSERT_FALSE(result.problems.empty());
  EXPECT_EQ(result.problems.back().code, DiagCode::I102);
}

TEST_F(KernelCache, keeps_nothing_without_a_folder) {
  const auto result =
      get_kernel(std::nullopt, "one", kKey, []() -> Checked<CompiledKernel> { return kKernel; });
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->use, CacheUse::Off);
}

TEST_F(KernelCache, keeps_no_kernel_that_does_not_compile) {
  const auto result = get_kernel(folder(), "one", kKey, []() -> Checked<CompiledKernel> {
    return make_diag(DiagCode::G004, {{"name", "one"}, {"reason", "no"}});
  });
  ASSERT_FALSE(result.ok());
  EXPECT_FALSE(fs::exists(entry()));
}

// While a file is replaced continually, its readers see only whole entries.
TEST_F(KernelCache, takes_writers_at_the_same_time) {
  std::vector<std::jthread> crew;
  for (int writer = 0; writer < 4; ++writer) {
    crew.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        fs::remove(entry());
        const auto result =
            get_kernel(folder(), "one", kKey, []() -> Checked<CompiledKernel> { return kKernel; });
        EXPECT_TRUE(result.ok() && result->kernel == kKernel);
        for (const Diag& problem : result->problems) {
          EXPECT_EQ(problem.code, DiagCode::I101) << render(problem);  // removed during the read
        }
      }
    });
  }
  crew.clear();
  get();
  EXPECT_EQ(get().use, CacheUse::Hit);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder()), fs::directory_iterator()), 1);
}

TEST(KernelKey, changes_with_each_thing_a_kernel_is_made_of) {
  const std::vector<std::string> options = {"-a", "-b"};
  const KernelSource source{.name = "one", .text = "text", .headers = {{"h", "header"}}};
  const std::string key = kernel_key(source, options, "13.0");
  EXPECT_EQ(key, kernel_key(source, options, "13.0"));
  EXPECT_NE(key, kernel_key(source, options, "13.1"));
  EXPECT_NE(key, kernel_key(source, std::vector<std::string>{"-a"}, "13.0"));
  KernelSource other = source;
  other.headers.front().text = "Header";
  EXPECT_NE(key, kernel_key(other, options, "13.0"));
  other = source;
  other.text = "texts";
  EXPECT_NE(key, kernel_key(other, options, "13.0"));
}

}  // namespace
}  // namespace harpe::cuda
