#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>

#include "lower/lower.h"
#include "tests/support/example_forms.h"
#include "tests/support/replay.h"
#include "verify/verify.h"

// The examples at sizes with uneven blocks, empty blocks (D12), and blocks whose mask hides every
// key (D16): each lowered plan verifies and gives the right result.
namespace harpe::test {
namespace {

void draw_sizes(Program& program, std::mt19937_64& random) {
  for (Decl& decl : program.decls) {
    auto* const axis = std::get_if<Axis>(&decl);
    if (axis == nullptr) continue;
    axis->size = Poly{static_cast<std::int64_t>(1 + random() % 40), {}};
    axis->align = static_cast<std::int64_t>(1 + random() % 4);
  }
}

TEST(Uneven, examples_lower_verify_and_replay) {
  std::mt19937_64 random(3);
  int verified = 0;
  for (Example example : example_forms()) {
    for (int round = 0; round < 6; ++round) {
      draw_sizes(example.program, random);
      const Checked<Plan> plan = lower(example.program, example.mesh, example.form);
      if (!plan.ok()) continue;
      SCOPED_TRACE(example.form.name + " round " + std::to_string(round));
      const auto result = verify(*plan);
      EXPECT_TRUE(result.ok()) << render(result.error());
      EXPECT_EQ(replay(*plan, random()).value_or("right"), "right");
      ++verified;
    }
  }
  EXPECT_GE(verified, 100);
}

}  // namespace
}  // namespace harpe::test
