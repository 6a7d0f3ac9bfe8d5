#include "search/search.h"

#include <gtest/gtest.h>

#include "support/check.h"
#include "tests/unit/search/cases.h"

namespace harpe {
namespace {

SearchResult expect_result(const Case& one, const SearchOptions& options) {
  Checked<SearchResult> result = search(one.program, one.mesh, one.machine, options);
  HP_CHECK(result.ok(), print(one.text) + (result.ok() ? "" : render(result.error())));
  return std::move(result).value();
}

double time_of(const SearchResult& result) { return result.top.front().time().microseconds(); }

// Cases small enough to simulate every candidate.
std::vector<std::pair<CaseText, Machine>> small_cases() {
  const Machine fast = flat_machine("switch", 4, 100);
  const Machine bus = flat_machine("bus", 4, 20);
  const Machine ring = flat_machine("ring", 3, 50);
  const Machine nodes = node_machine({});
  std::vector<std::pair<CaseText, Machine>> all;
  for (const char* heads : {"heads=2", "heads=8"}) {
    for (const char* mask : {"causal=false", "causal=true"}) {
      const std::vector<std::string> sizes = {"seq=2048", "head_dim=64", heads, mask};
      all.push_back({{"attention", sizes, "cp=2"}, fast});
      all.push_back({{"attention", sizes, "cp=3"}, ring});
      all.push_back({{"attention", sizes, "cp=4", "", Contract::Standard, 0}, bus});
    }
    all.push_back({{"attention",
                    {"seq=2048", "head_dim=64", heads},
                    "node=2,gpu=2",
                    "",
                    Contract::Standard,
                    0},
                   nodes});
  }
  all.push_back({{"attention", {"seq=4096", "heads=8", "kv_heads=2", "causal=true"}, "cp=2"}, bus});
  for (const char* op : {"gemm", "ag_gemm", "gemm_rs", "gemm_ar"}) {
    const std::vector<std::string> sizes = {"m=2048", "n=1024", "k=4096"};
    all.push_back({{op, sizes, "tp=3"}, bus});
    all.push_back({{op, sizes, "tp=4", "", Contract::Standard, 0}, fast});
    if (std::string(op) == "gemm") continue;  // it is like ag_gemm
    all.push_back({{op, sizes, "node=2,gpu=2", "", Contract::Standard, 0}, nodes});
  }
  all.push_back({{"decode", {"batch=8", "kv=4096", "heads=8"}, "tp=2"}, fast});
  all.push_back(
      {{"decode", {"batch=8", "kv=4096", "heads=8"}, "node=2,gpu=2", "", Contract::Standard, 0},
       nodes});
  all.push_back({{"attention_bwd", {"seq=1024", "heads=4", "head_dim=64"}, "cp=2"}, fast});
  return all;
}

// The search may beat the exhaustive search, which does not refine its best candidates.
TEST(Search, finds_the_optimum_of_the_space) {
  int worse = 0;
  const auto cases = small_cases();
  EXPECT_GE(cases.size(), 20U);
  for (const auto& [text, machine] : cases) {
    const auto one = make_case(text, machine);
    SearchOptions options = one->options();
    const SearchResult quick = expect_result(*one, options);
    options.exhaustive = true;
    const SearchResult all = expect_result(*one, options);
    const double ratio = time_of(quick) / time_of(all);
    std::printf("%-90s %6lld candidates, %4lld simulated: %8.1f us against %8.1f, %.3f\n",
                print(text).c_str(), static_cast<long long>(quick.candidates),
                static_cast<long long>(quick.simulated), time_of(quick), time_of(all), ratio);
    worse += ratio > 1.001 ? 1 : 0;
    EXPECT_LE(ratio, 1.01) << print(text) << ": " << quick.top.front().label << " against "
                           << all.top.front().label;
    EXPECT_EQ(quick.candidates, all.candidates);
    EXPECT_LT(quick.simulated, all.simulated + 40);
  }
  EXPECT_LE(worse, 1);
}

}  // namespace
}  // namespace harpe
