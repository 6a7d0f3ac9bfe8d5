#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/golden/case.h"

namespace harpe::golden {
namespace {

namespace fs = std::filesystem;

const fs::path kCases = fs::path(HARPE_SOURCE_DIR) / "tests" / "golden";

// The folder of cases for the other kind of build: with or without the CUDA back end.
#ifdef HARPE_WITH_CUDA
constexpr std::string_view kOfOtherBuilds = "without_cuda/";
#else
constexpr std::string_view kOfOtherBuilds = "cuda/";
#endif

std::vector<std::string> all_cases() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kCases)) {
    if (entry.path().extension() == ".comm") {
      names.push_back(fs::relative(entry.path(), kCases).replace_extension().string());
      if (names.back().starts_with(kOfOtherBuilds)) names.pop_back();
    }
  }
  std::ranges::sort(names);
  return names;
}

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool is_refused(const Case& value) {
  return std::ranges::any_of(value.steps, [](const Step& step) { return step.run.exit != 0; });
}

// A temporary folder for one case.
class Scratch {
 public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "harpe-golden-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    fs::create_directory(folder());
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { fs::remove_all(root_); }
  [[nodiscard]] fs::path folder() const { return root_ / "case"; }

 private:
  fs::path root_;
};

class Golden : public testing::TestWithParam<std::string> {};

// HARPE_UPDATE=1 in the environment rewrites the files instead, so that `git diff` shows the
// changes.
TEST_P(Golden, says_exactly_what_is_written) {
  const fs::path path = kCases / (GetParam() + ".comm");
  const std::string written = read(path);
  const Scratch scratch;
  const Case seen = execute(parse_case(written), scratch.folder());
  if (const char* update = std::getenv("HARPE_UPDATE"); update != nullptr && *update == '1') {
    std::ofstream(path, std::ios::binary) << print_case(seen);
  } else {
    EXPECT_EQ(print_case(seen), written);
  }
  EXPECT_EQ(is_refused(seen), path.filename().string().starts_with("fail_"))
      << "a case is called `fail_…` if and only if something in it is refused";
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden, testing::ValuesIn(all_cases()), [](const auto& one) {
  std::string name = one.param;
  std::ranges::replace_if(name, [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

}  // namespace
}  // namespace harpe::golden
