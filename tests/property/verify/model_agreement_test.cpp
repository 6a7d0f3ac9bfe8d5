#include <gtest/gtest.h>

#include <random>

#include "ir/blocks.h"
#include "ir/mask.h"
#include "tests/support/example_forms.h"
#include "verify/model.h"

// The verifier's model and the compiler's block algebra are independent implementations of one
// specification. They must agree on the same forms, at sizes with uneven and empty blocks.
namespace harpe::test {
namespace {

void set_size(Program& program, const std::string& axis, std::int64_t size, std::int64_t align) {
  for (Decl& decl : program.decls) {
    auto* const found = std::get_if<Axis>(&decl);
    if (found == nullptr || found->name != axis) continue;
    found->size = Poly{size, {}};
    found->align = align;
  }
}

void expect_agreement(const Example& example) {
  const auto model = verifier::Model::make(example.program, example.mesh, example.form);
  const auto blocks = Blocks::make(example.program, example.mesh, example.form);
  ASSERT_TRUE(model.ok()) << render(model.error());
  ASSERT_TRUE(blocks.ok()) << render(blocks.error());
  ASSERT_EQ(model->axes.size(), blocks->axes().size());
  for (std::size_t a = 0; a < model->axes.size(); ++a) {
    for (std::int64_t b = 0; b < model->axes[a].blocks; ++b) {
      const Interval interval = blocks->interval(static_cast<int>(a), b);
      const auto at = static_cast<std::size_t>(b);
      ASSERT_EQ(model->axes[a].begin[at], interval.begin) << model->axes[a].name << " " << b;
      ASSERT_EQ(model->axes[a].end[at], interval.end) << model->axes[a].name << " " << b;
    }
  }
  for (std::size_t x = 0; x < model->buffers.size(); ++x) {
    const auto& digits = blocks->buffers()[x].digits;
    ASSERT_EQ(model->buffers[x].radix.blocks, blocks->buffers()[x].blocks);
    for (std::int64_t b = 0; b < model->buffers[x].radix.blocks; ++b) {
      ASSERT_EQ(model->buffers[x].is_empty(b), blocks->elements(static_cast<int>(x), b) == 0);
      const Region region = blocks->region_of(digits, b);
      for (RankId rank(0); rank.value < model->ranks; ++rank.value) {
        const bool home = intersect(blocks->home(static_cast<int>(x), rank), region).has_value();
        ASSERT_EQ(model->is_home(static_cast<int>(x), rank, b), home);
      }
    }
  }
}

TEST(ModelAgreement, holds_for_the_examples) {
  for (const Example& example : example_forms()) {
    SCOPED_TRACE(example.form.name);
    expect_agreement(example);
  }
}

TEST(ModelAgreement, holds_at_any_size) {
  std::mt19937_64 random(7);
  for (Example example : example_forms()) {
    for (int round = 0; round < 8; ++round) {
      for (const Axis* const axis : axes_of(example.program)) {
        const auto size = static_cast<std::int64_t>(1 + random() % (round < 4 ? 40 : 600));
        const auto align = static_cast<std::int64_t>(1 + random() % 200);
        set_size(example.program, axis->name, size, align);
      }
      SCOPED_TRACE(example.form.name + " round " + std::to_string(round));
      expect_agreement(example);
    }
  }
}

TEST(ModelAgreement, holds_for_what_a_mask_hides) {
  std::mt19937_64 random(11);
  int hidden = 0;
  for (Example example : example_forms()) {
    Stmt& stmt = example.program.nests.back().stmts.back();
    if (stmt.masks.empty()) continue;
    for (int round = 0; round < 4; ++round) {
      set_size(example.program, "Sq", static_cast<std::int64_t>(1 + random() % 3000), 1);
      set_size(example.program, "Skv", static_cast<std::int64_t>(1 + random() % 3000), 1);
      stmt.masks.resize(1);
      for (const char* kind : {"window", "prefix"}) {
        if (random() % 2 == 0) continue;
        stmt.masks.push_back(stmt.masks[0]);
        stmt.masks.back().call.function = kind;
        stmt.masks.back().call.args.emplace_back(static_cast<std::int64_t>(1 + random() % 900));
      }
      const auto model = verifier::Model::make(example.program, example.mesh, example.form);
      const auto blocks = Blocks::make(example.program, example.mesh, example.form);
      ASSERT_TRUE(model.ok() && blocks.ok());
      const verifier::StatementModel& statement = model->statements.back();
      const verifier::NestModel& nest = model->nests.back();
      const ResolvedMask mask = resolve_masks(*blocks, stmt).value();
      for (std::int64_t i = 0; i < nest.space.blocks; ++i) {
        const std::vector<std::int32_t> point = verifier::point_of(nest.space, i);
        if (model->is_empty(nest, point)) continue;
        const auto interval = [&](int axis) {
          return blocks->interval(axis, blocks->axis_block(axis, nest.space.digits, point));
        };
        const bool empty = classify(mask.visible, interval(mask.query_axis),
                                    interval(mask.key_axis)) == Coverage::Empty;
        ASSERT_EQ(model->is_masked(statement, point), empty);
        if (empty) ++hidden;
      }
    }
  }
  EXPECT_GT(hidden, 0);
}

}  // namespace
}  // namespace harpe::test
