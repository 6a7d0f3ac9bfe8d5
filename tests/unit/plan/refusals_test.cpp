#include <algorithm>
#include <random>

#include "tests/unit/plan/fixture.h"

namespace harpe {
namespace {

// The ring's plan file with one edit of its body, under a header with the right hash.
std::string edited(const std::string& from, const std::string& to) {
  std::string body = test::body_of(print_plan(test::ring()));
  const std::size_t at = body.find(from);
  if (at == std::string::npos) ADD_FAILURE() << "the ring has no `" << from << "`";
  return test::with_hash(body.replace(at, from.size(), to));
}

std::string refusal(const std::string& text) {
  const Checked<Plan> plan = parse_plan(text, "ring.plan");
  return plan.ok() ? "accepted" : render(plan.error());
}

void expect_refused(const std::string& text, DiagCode code, const std::string& rendered) {
  const Checked<Plan> plan = parse_plan(text, "ring.plan");
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(info(plan.error().code).name, info(code).name);
  EXPECT_EQ(render(plan.error()), rendered);
}

TEST(PlanRefusals, name_both_hashes_of_an_edited_file) {
  std::string text = print_plan(test::ring());
  const std::string hash = hash_text(test::body_of(text));
  const std::size_t at = text.find("exit");
  text.replace(at, 4, "init");
  expect_refused(
      text, DiagCode::V101,
      "error[V101]: ring.plan:1:21: hash is `" + hash + "` and the text below it hashes to `" +
          hash_text(test::body_of(text)) +
          "`: the file was edited; lower the schedule again instead of editing its plan");
}

TEST(PlanRefusals, name_the_version_they_cannot_read) {
  std::string text = print_plan(test::ring());
  text.replace(text.find("version 1"), 9, "version 2");
  expect_refused(text, DiagCode::V102,
                 "error[V102]: ring.plan:1:14: plan version 2 cannot be read: this build reads "
                 "versions 1 to 1; lower the schedule again with this build");
  text.replace(text.find("version 2"), 9, "version 0");
  expect_refused(text, DiagCode::V102,
                 "error[V102]: ring.plan:1:14: plan version 0 cannot be read: this build reads "
                 "versions 1 to 1; lower the schedule again with this build");
}

TEST(PlanRefusals, hold_the_first_line_to_its_form) {
  EXPECT_EQ(refusal(""), "error[T001]: ring.plan:1:1: expected `plan`, found the end of the text");
  EXPECT_EQ(refusal("commir x for y on z {}"),
            "error[T001]: ring.plan:1:1: expected `plan`, found `commir`");
  EXPECT_EQ(refusal("plan version one"),
            "error[T001]: ring.plan:1:14: expected a version, found `one`");
  EXPECT_EQ(refusal("plan version 1 hash \"\" now"),
            "error[T001]: ring.plan:1:24: expected the end of the line, found `now`");
}

TEST(PlanRefusals, want_dense_ascending_ids) {
  expect_refused(edited("alloc 3 rank", "alloc 4 rank"), DiagCode::V103,
                 "error[V103]: ring.plan:31:9: alloc id is 4, must be 3, the next one");
  expect_refused(edited("lane 5 rank", "lane 4 rank"), DiagCode::V103,
                 "error[V103]: ring.plan:43:8: lane id is 4, must be 5, the next one");
  expect_refused(edited("task 0 lane", "task 1 lane"), DiagCode::V103,
                 "error[V103]: ring.plan:44:8: task id is 1, must be 0, the next one");
}

TEST(PlanRefusals, want_references_to_what_is_there) {
  expect_refused(edited("alloc 0 rank 0", "alloc 0 rank 2"), DiagCode::V103,
                 "error[V103]: ring.plan:28:16: rank is 2, must be within 0..1");
  expect_refused(edited("task 1 lane 3", "task 1 lane 6"), DiagCode::V103,
                 "error[V103]: ring.plan:45:15: lane is 6, must be within 0..5");
  expect_refused(edited("r 0[0, *, *] set", "r 10[0, *, *] set"), DiagCode::V103,
                 "error[V103]: ring.plan:46:46: alloc is 10, must be within 0..9");
  expect_refused(edited("sync 0 -> 4", "sync 0 -> 12"), DiagCode::V103,
                 "error[V103]: ring.plan:56:13: task is 12, must be within 0..11");
  expect_refused(edited("barrier 0, 1", "barrier 0, -1"), DiagCode::V103,
                 "error[V103]: ring.plan:62:14: task is -1, must be within 0..11");
  expect_refused(
      test::with_hash(test::body_of(print_plan(test::subject()))
                          .replace(test::body_of(print_plan(test::subject())).rfind('}'), 1,
                                   "task 0 lane 0 entry")),
      DiagCode::V103,
      "error[V103]: ring.plan:28:13: lane is 0, must be one of those above, and there is none");
}

TEST(PlanRefusals, want_sizes_and_flags_that_fit) {
  expect_refused(
      edited("at 256 bytes 20", "at -256 bytes 20"), DiagCode::V103,
      "error[V103]: ring.plan:29:75: offset is -256, must be within 0..9223372036854775807");
  expect_refused(edited("at 256 bytes 20", "at 256 bytes 9223372036854775807"), DiagCode::V103,
                 "error[V103]: ring.plan:29:85: bytes is 9223372036854775807, must be within "
                 "0..9223372036854775551");
  expect_refused(edited("via flag 0", "via flag 2147483648"), DiagCode::V103,
                 "error[V103]: ring.plan:58:24: flag is 2147483648, must be within 0..2147483647");
  expect_refused(
      edited("kernel 0", "kernel 99999999999999999999"), DiagCode::T003,
      "error[T003]: ring.plan:48:37: number `99999999999999999999` does not fit 64 bits");
}

TEST(PlanRefusals, name_what_the_program_does_not_have) {
  expect_refused(
      edited("buffer A level", "buffer D level"), DiagCode::V104,
      "error[V104]: ring.plan:28:32: buffer `D` is not in program `gemm` (did you mean `A`?)");
  expect_refused(
      edited("compute mm.0", "compute mn.0"), DiagCode::V104,
      "error[V104]: ring.plan:48:25: nest `mn` is not in program `gemm` (did you mean `mm`?)");
  expect_refused(
      edited("compute mm.0", "compute mm.1"), DiagCode::V104,
      "error[V104]: ring.plan:48:25: statement `mm.1` is not in nest `mm` of 1 statements");
  expect_refused(edited("plan ag_ring for gemm on one", "plan ag_ring for gemm on two"),
                 DiagCode::V104,
                 "error[V104]: ring.plan:27:26: mesh `two` is not in this file, which holds `one`");
  expect_refused(edited("plan ag_ring for", "plan ag_fetch for"), DiagCode::V104,
                 "error[V104]: ring.plan:27:6: normal form `ag_fetch` is not in this file, which "
                 "holds `ag_ring`");
}

TEST(PlanRefusals, hold_boxes_to_their_digits) {
  expect_refused(edited("r 0[0, *, *] set", "r 0[0, *] set"), DiagCode::V105,
                 "error[V105]: ring.plan:46:47: box of buffer `A` has length 2, must have 3 (`m0`, "
                 "`m1`, `K.all`)");
  expect_refused(
      edited("r 0[0, *, *] set", "r 0[2, *, *] set"), DiagCode::V105,
      "error[V105]: ring.plan:46:48: box of buffer `A` has 2..3 at digit `m0` of extent 2");
  expect_refused(
      edited("r 0[0, *, *] set", "r 0[0, 2..2, *] set"), DiagCode::V105,
      "error[V105]: ring.plan:46:51: box of buffer `A` has 2..2 at digit `m1` of extent 3");
  expect_refused(edited("iter [0, *, 0, *, *]", "iter [0, *, 0, *]"), DiagCode::V105,
                 "error[V105]: ring.plan:48:56: box of nest `mm` has length 4, must have 5 (`m0`, "
                 "`m1`, `n0`, `n1`, `K.all`)");
  expect_refused(edited("holds [., *, *]", "holds [., *, *, *]"), DiagCode::V105,
                 "error[V105]: ring.plan:28:62: holds of buffer `A` has length 4, must have 3 "
                 "(`m0`, `m1`, `K.all`)");
}

TEST(PlanRefusals, stop_at_the_largest_plan) {
  std::string body = test::body_of(print_plan(test::subject()));
  body.resize(body.rfind('}'));
  body += "lane 0 rank 0 host\n";
  for (int i = 0; i <= 1'000'000; ++i) body += "task " + std::to_string(i) + " lane 0 entry\n";
  expect_refused(test::with_hash(body + "}\n"), DiagCode::V106,
                 "error[V106]: ring.plan:1000029:6: plan has more than 1000000 tasks; lower on "
                 "fewer ranks, or with coarser digits");
}

TEST(PlanRefusals, want_a_ground_program) {
  expect_refused(edited("  axis M = 6", "  param m = 6\n  axis M = m"), DiagCode::V107,
                 "error[V107]: ring.plan:2:1: program `gemm` still has parameters; instantiate the "
                 "program before lowering it");
}

TEST(PlanRefusals, show_where_a_broken_subject_begins) {
  expect_refused(edited("split M = m0:2 * m1:3", "split M = m0:3 * m1:3"), DiagCode::F111,
                 "error[F111]: ring.plan:14:1: digit `m0` has extent 3, but mesh axes gpu hold 2 "
                 "ranks; tile the axis by the number of ranks");
}

TEST(PlanRefusals, hold_every_line_to_the_grammar) {
  EXPECT_EQ(refusal(edited("lane 5 rank 1 ce", "alloc 10 rank 1 A")),
            "error[T001]: ring.plan:43:3: expected `lane`, `task`, `sync`, `barrier` or `}`, found "
            "`alloc`");
  EXPECT_EQ(refusal(edited("task 0 lane 0 entry", "task 0 lane 0 enter")),
            "error[T001]: ring.plan:44:17: expected a task kind, found `enter`");
  EXPECT_EQ(refusal(edited("task 0 lane 0 entry", "task 0 lane 0")),
            "error[T001]: ring.plan:44:16: expected a task kind, found the end of the line");
  EXPECT_EQ(refusal(edited("task 0 lane 0 entry", "task 0 lane 0 entry iter [*]")),
            "error[T001]: ring.plan:44:23: expected a statement before `iter`, found `iter`");
  EXPECT_EQ(refusal(edited("set 8[0, *, *]", "put 8[0, *, *]")),
            "error[T001]: ring.plan:46:57: expected `init`, `add`, `set` or the end of the line, "
            "found `put`");
  EXPECT_EQ(refusal(edited("lane 0 rank 0 host", "lane 0 rank 0 host 3")),
            "error[T001]: ring.plan:38:22: expected the end of the line, found `3`");
  EXPECT_EQ(refusal(edited("lane 0 rank 0 host", "lane 0 rank 0 host ?")),
            "error[T002]: ring.plan:38:22: character `?` cannot start a token");
  EXPECT_EQ(refusal(edited("leaf \"gemm\" iter", "leaf \"gemm iter")),
            "error[T004]: ring.plan:48:44: string is not closed on its line; close it with `\"`");
  EXPECT_EQ(refusal(edited("counter 1\n}\n", "counter 1\n")),
            "error[T001]: ring.plan:63:1: expected `}`, found the end of the text");
  EXPECT_EQ(refusal(edited("counter 1\n}\n", "counter 1\n}\n\nplan\n")),
            "error[T001]: ring.plan:65:1: expected the end of the text, found `plan`");
  EXPECT_EQ(refusal(edited("\nplan ag_ring", "\nplane ag_ring")),
            "error[T001]: ring.plan:27:1: expected `plan`, found `plane`");
}

TEST(PlanRefusals, survive_a_file_cut_anywhere) {
  const std::string text = print_plan(test::ring());
  for (std::size_t length = 0; length < text.size(); length += 37) {
    EXPECT_FALSE(parse_plan(text.substr(0, length), "").ok()) << length;
  }
  // Now with the right hash, so that the grammar, not the header, must detect the cut. Losing only
  // the last newline is harmless.
  const std::string body = test::body_of(text);
  for (std::size_t length = 0; length + 1 < body.size(); ++length) {
    const Checked<Plan> plan = parse_plan(test::with_hash(body.substr(0, length)), "");
    ASSERT_FALSE(plan.ok()) << length;
    ASSERT_TRUE(plan.error().where.has_value()) << render(plan.error());
  }
}

TEST(PlanRefusals, survive_corruption_of_any_piece) {
  const std::string body = test::body_of(print_plan(test::ring()));
  constexpr std::string_view kBytes = "0129*.,[]{}->\"/ \n\0axrm\xff";
  std::mt19937 random(11);
  const auto up_to = [&](std::size_t last) {
    return std::uniform_int_distribution<std::size_t>(0, last)(random);
  };
  int accepted = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string broken = body;
    for (std::size_t edits = 1 + up_to(2); edits > 0; --edits) {
      const std::size_t at = up_to(broken.size() - 1);
      switch (up_to(3)) {
        case 0:
          broken[at] = kBytes[up_to(kBytes.size() - 1)];
          break;
        case 1:
          broken.insert(at, 1, kBytes[up_to(kBytes.size() - 1)]);
          break;
        case 2:
          broken.erase(at, 1 + up_to(40));
          break;
        default:
          broken.insert(at, body.substr(up_to(body.size() - 1), up_to(60)));
          break;
      }
    }
    const Checked<Plan> plan = parse_plan(test::with_hash(broken), "");
    if (!plan.ok()) {
      ASSERT_TRUE(plan.error().where.has_value()) << render(plan.error());
      ASSERT_FALSE(render(plan.error()).empty());
      continue;
    }
    ++accepted;  // accepted plans must print and parse back
    const Checked<Plan> again = parse_plan(print_plan(*plan), "");
    ASSERT_TRUE(again.ok() && *again == *plan) << broken;
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 2000);
}

TEST(PlanRefusals, survive_garbage) {
  std::mt19937 random(5);
  for (int round = 0; round < 500; ++round) {
    std::string garbage(std::uniform_int_distribution<std::size_t>(0, 200)(random), '\0');
    for (char& c : garbage) {
      c = static_cast<char>(std::uniform_int_distribution<int>(0, 255)(random));
    }
    EXPECT_FALSE(parse_plan(garbage, "").ok());
    EXPECT_FALSE(parse_plan(test::with_hash(garbage), "").ok());
  }
}

}  // namespace
}  // namespace harpe
