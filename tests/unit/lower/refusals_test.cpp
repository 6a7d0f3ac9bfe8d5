// Refusals that no command line reaches: an earlier stage refuses first, or no shipped leaf is
// concerned.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <utility>

#include "tests/unit/lower/fixture.h"

namespace harpe::test {
namespace refusals_test {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

constexpr const char* kChunked =
    "  split M = m0:2 * m1:_\n  place a[]\n  place b[]\n  place c[]\n"
    "  nest mm {\n    leaf chunk m0\n  }\n";

TEST(Refusals, a_leaf_without_a_waiting_kernel_takes_no_chunks) {  // F302
  Source source = gemm(16, 16, 16, "x:1", kChunked);
  EXPECT_EQ(refusal(source), "accepted");
  source.program = replaced(source.program, "  nest mm", "  leaf mine\n  nest mm");
  source.program = replaced(source.program, "matmul(", "mine(");
  EXPECT_EQ(refusal(source),
            "error[F302]: leaf `mine` has no kernel that takes its operands chunk by chunk; remove "
            "`chunk`");
}

TEST(Refusals, an_order_takes_no_more_memory_than_it_may) {  // I504
  const Source source = gemm(16, 16, 16, "x:4",
                             "  split M = m0:4 * m1:_\n  place a[m0@x]\n  place b[]\n"
                             "  place c[m0@x]\n  nest mm {\n    par m0 on x\n    leaf\n  }\n");
  EXPECT_EQ(refusal(source), "accepted");
  LowerOptions options;
  options.most_order_bytes = 0;
  EXPECT_EQ(refusal(source, options).substr(0, 82),
            "error[I504]: the order of 18 tasks on 4 ranks takes more than 0 MiB, reached after");
}

TEST(Refusals, a_plan_is_given_up_wherever_its_time_ends) {  // I505
  const Source source = gemm(16, 16, 16, "x:4",
                             "  split M = m0:4 * m1:_\n  place a[m0@x]\n  place b[]\n"
                             "  place c[m0@x]\n  nest mm {\n    par m0 on x\n    leaf\n  }\n");
  int asked = 0;
  LowerOptions options;
  options.limit.interrupted = [&] { return ++asked < 0; };
  ASSERT_EQ(refusal(source, options), "accepted");
  const int times = asked;
  std::map<std::string, int, std::less<>> asked_in;
  options.after_stage = [&](std::string_view stage, const auto&, std::chrono::nanoseconds) {
    asked_in.emplace(stage, std::exchange(asked, 0));
  };
  asked = 0;
  ASSERT_EQ(refusal(source, options), "accepted");
  asked_in.emplace("emit", asked);
  options.after_stage = nullptr;
  // The limit is checked before the statement, before each of 18 tasks (in the order's reduction:
  // those before the exits), and once after each stage, counted with the next one.
  const std::map<std::string, int, std::less<>> expected = {
      {"derive", 1}, {"dead", 1},       {"redundant", 1},   {"pack", 1},     {"collectives", 1},
      {"merge", 1},  {"order", 18 + 1}, {"reduce", 13 + 1}, {"emit", 18 + 1}};
  EXPECT_EQ(asked_in, expected);
  for (int left = 0; left < times; ++left) {
    asked = 0;
    options.limit.interrupted = [&] { return ++asked > left; };
    EXPECT_EQ(refusal(source, options),
              "error[I505]: lowering the schedule was given up: the time for it is over; give it "
              "more time");
    EXPECT_EQ(asked, left + 1);
  }
}

}  // namespace refusals_test
}  // namespace harpe::test
