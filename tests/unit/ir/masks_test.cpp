// Data masks and conditional declarations: their text, instantiation, and what a leaf reads.
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "ir/instantiate.h"
#include "ir/mask_contract.h"
#include "ir/mask_data.h"
#include "tests/unit/ir/text_support.h"

namespace harpe::ir_test {
namespace masks_test {

const std::string kText =
    "program cache {\n"
    "  param kv = 12\n"
    "  param page = 0\n"
    "  param ragged : bool = false\n"
    "  axis B = 3\n"
    "  axis Skv = kv\n"
    "  axis H = 1\n"
    "  axis G = 2\n"
    "  axis D = 4\n"
    "  axis Np = kv/page\n"
    "  buffer q : f32[B, (H, G), D] in\n"
    "  buffer k : f32[B, Skv, H, D] in\n"
    "  buffer pages : i32[B, Np] in if page\n"
    "  buffer lengths : i32[B] in if ragged\n"
    "  buffer o : f32[B, (H, G), D] out\n"
    "  buffer l : f32[B, (H, G)] out\n"
    "  nest dec over (B, H, G, Skv) whole (D, Np) {\n"
    "    (o, l) lse= attn_fwd(q, k, k) where paged(Skv, page, pages) if page and "
    "length(Skv, lengths) if ragged\n"
    "  }\n"
    "}\n";

Program ground(const Bindings& bindings) {
  Checked<Program> program = instantiate(program_of(kText), bindings);
  EXPECT_TRUE(program.ok()) << render(program.error());
  return std::move(program).value();
}

Scalar integer(std::int64_t value) { return value; }

std::vector<std::string> names(const std::vector<Access>& accesses) {
  std::vector<std::string> out;
  for (const Access& access : accesses) out.push_back(access.buffer);
  return out;
}

TEST(Condition, reads_back_as_it_was_written) { EXPECT_EQ(print(program_of(kText)), kText); }

TEST(Condition, that_is_off_leaves_no_trace_of_masks_buffers_and_their_axes) {
  const std::string text = print(ground({}));
  EXPECT_EQ(text.find("Np"), std::string::npos) << text;
  EXPECT_EQ(text.find("pages"), std::string::npos) << text;
  EXPECT_EQ(text.find("lengths"), std::string::npos) << text;
  EXPECT_EQ(text.find("where"), std::string::npos) << text;
  EXPECT_NE(text.find("whole (D) {"), std::string::npos) << text;
}

TEST(Condition, that_is_on_is_gone_from_the_ground_program) {
  const Program program = ground({{"page", integer(4)}, {"ragged", Name{"true"}}});
  const std::string text = print(program);
  EXPECT_NE(text.find("  axis Np = 3\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  buffer pages : i32[B, Np] in\n"), std::string::npos) << text;
  EXPECT_NE(text.find("where paged(Skv, 4, pages) and length(Skv, lengths)\n"), std::string::npos)
      << text;
  EXPECT_TRUE(is_ground(program));
  EXPECT_EQ(print(program_of(text)), text);
}

TEST(Condition, keeps_an_axis_that_something_else_has) {
  std::string text = kText;
  text.replace(text.find("  buffer q"), 0, "  buffer extra : f32[Np] in\n");
  const Checked<Program> off = instantiate(program_of(text), {});
  ASSERT_FALSE(off.ok());
  EXPECT_EQ(render(off.error()), "error[P105]: axis `Np`: 12 / 0 has no value");
}

TEST(Masks, read_their_buffers_after_the_operands_each_once) {
  const Program program = ground({{"page", integer(4)}, {"ragged", Name{"true"}}});
  Stmt stmt = program.nests[0].stmts[0];
  EXPECT_EQ(names(mask_reads(stmt)), (std::vector<std::string>{"pages", "lengths"}));
  EXPECT_EQ(names(reads_of(stmt)), (std::vector<std::string>{"q", "k", "k", "pages", "lengths"}));
  stmt.masks.push_back(stmt.masks.front());
  EXPECT_EQ(mask_reads(stmt).size(), 2U);
}

TEST(MaskData, is_drawn_within_its_meaning) {
  const Program program = ground({{"page", integer(2)}, {"ragged", Name{"true"}}});
  const Buffer& pages = *find_buffer(program, "pages");
  const Buffer& lengths = *find_buffer(program, "lengths");
  std::set<double> seen;
  bool moved = false;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const HostTensor table = draw_input(program, pages, seed);
    EXPECT_TRUE(check_mask_data(program, pages, {{"pages", table}}).ok());
    for (std::int64_t i = 0; i < 6; ++i) moved = moved || load(table, i) != static_cast<double>(i);
    const HostTensor some = draw_input(program, lengths, seed);
    EXPECT_TRUE(check_mask_data(program, lengths, {{"lengths", some}}).ok());
    for (std::int64_t i = 0; i < 3; ++i) seen.insert(load(some, i));
  }
  EXPECT_TRUE(moved);
  EXPECT_EQ(seen.size(), 13U) << "every length, none and all among them";
  const HostTensor again = draw_input(program, lengths, 7);
  EXPECT_EQ(draw_input(program, lengths, 7).data, again.data);
}

TEST(MaskData, of_documents_ascends_along_a_row) {
  const Program program = program_of(
      "program p { axis B = 4 axis Q = 50 axis K = 50 axis H = 1 axis D = 2 axis S = 50"
      " buffer q : f32[B, Q, H, D] in buffer k : f32[B, K, H, D] in buffer seg : i32[B, S] in"
      " buffer o : f32[B, Q, H, D] out buffer l : f32[B, H, Q] out"
      " nest n over (B, H, Q, K) whole (D, S) {"
      " (o, l) lse= attn_fwd(q, k, k) where doc(Q, K, seg) } }");
  double documents = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const HostTensor ids = draw_input(program, *find_buffer(program, "seg"), seed);
    for (std::int64_t i = 0; i < 200; ++i) {
      if (i % 50 == 0) {
        EXPECT_EQ(load(ids, i), 0);
        continue;
      }
      const double step = load(ids, i) - load(ids, i - 1);
      EXPECT_TRUE(step == 0 || step == 1);
    }
    documents += load(ids, 49) + 1;
  }
  EXPECT_NEAR(documents / 50, 4, 1);
}

TEST(MaskData, out_of_range_is_refused_with_its_place) {
  const Program program = ground({{"page", integer(4)}, {"ragged", Name{"true"}}});
  const Buffer& lengths = *find_buffer(program, "lengths");
  const Buffer& pages = *find_buffer(program, "pages");
  HostTensor length = make_tensor(DType::I32, {3});
  store(length, 2, -1);
  EXPECT_EQ(render(check_mask_data(program, lengths, {{"lengths", length}}).error()),
            "error[P220]: `lengths` holds -1 at [2], and mask `length` takes 0 to 12");
  HostTensor table = draw_input(program, pages, 1);
  store(table, 4, 3);
  EXPECT_EQ(render(check_mask_data(program, pages, {{"pages", table}}).error()),
            "error[P220]: `pages` holds 3 at [1, 1], and mask `paged` takes -1 to 2");
  for (std::int64_t i = 0; i < 9; ++i) store(table, i, -1);
  EXPECT_TRUE(check_mask_data(program, pages, {{"pages", table}}).ok()) << "without a place";
  store(table, 6, 2);
  store(table, 8, 2);
  EXPECT_EQ(render(check_mask_data(program, pages, {{"pages", table}}).error()),
            "error[P221]: `pages` holds page 2 at [2, 0] and again at [2, 2]");
}

TEST(MaskData, of_a_table_counts_within_the_lengths) {
  const Program program = ground({{"page", integer(4)}, {"ragged", Name{"true"}}});
  const Buffer& pages = *find_buffer(program, "pages");
  TensorMap inputs = {{"pages", make_tensor(DType::I32, {3, 3})},
                      {"lengths", make_tensor(DType::I32, {3})}};
  const auto set = [&](std::int64_t row, std::array<std::int64_t, 3> table, std::int64_t keys) {
    for (std::size_t i = 0; i < 3; ++i) {
      store(inputs["pages"], row * 3 + static_cast<std::int64_t>(i), static_cast<double>(table[i]));
    }
    store(inputs["lengths"], row, static_cast<double>(keys));
  };
  set(0, {7, 7, 7}, 0);
  set(1, {0, 0, 9}, 4);
  set(2, {2, 1, 2}, 8);
  EXPECT_TRUE(check_mask_data(program, pages, inputs).ok()) << "what is beyond is not looked at";
  set(1, {0, 0, 9}, 5);
  EXPECT_EQ(render(check_mask_data(program, pages, inputs).error()),
            "error[P221]: `pages` holds page 0 at [1, 0] and again at [1, 1]");
  set(1, {0, 1, 9}, 9);
  EXPECT_EQ(render(check_mask_data(program, pages, inputs).error()),
            "error[P220]: `pages` holds 9 at [1, 2], and mask `paged` takes -1 to 2");
}

TEST(MaskData, of_a_pool_has_the_pools_pages_and_the_tables_lengths) {
  const Program program = program_of(
      "program p { axis B = 2 axis K = 12 axis H = 1 axis G = 2 axis D = 2 axis Np = 2"
      " buffer q : f32[B, (H, G), D] in buffer k : f32[K, H, D] in"
      " buffer tab : i32[B, Np] in buffer len : i32[B] in"
      " buffer o : f32[B, (H, G), D] out buffer l : f32[B, (H, G)] out"
      " nest n over (B, H, G, K) whole (D, Np) {"
      " (o, l) lse= attn_fwd(q, k, k) where paged(K, 3, tab) and length(K, len) } }");
  const Buffer& table = *find_buffer(program, "tab");
  const Buffer& lengths = *find_buffer(program, "len");
  std::set<double> held;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const TensorMap drawn = {{"tab", draw_input(program, table, seed)},
                             {"len", draw_input(program, lengths, seed)}};
    EXPECT_TRUE(check_mask_data(program, table, drawn).ok());
    EXPECT_TRUE(check_mask_data(program, lengths, drawn).ok());
    for (std::int64_t i = 0; i < 4; ++i) held.insert(load(drawn.at("tab"), i));
  }
  EXPECT_EQ(held, (std::set<double>{0, 1, 2, 3}));
  TensorMap wrong = {{"len", make_tensor(DType::I32, {2})}};
  store(wrong["len"], 0, 7);
  EXPECT_EQ(render(check_mask_data(program, lengths, wrong).error()),
            "error[P220]: `len` holds 7 at [0], and mask `length` takes 0 to 6");
}

}  // namespace masks_test
}  // namespace harpe::ir_test
