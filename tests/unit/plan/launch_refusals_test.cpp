#include <algorithm>
#include <random>
#include <vector>

#include "tests/unit/plan/launch_fixture.h"

namespace harpe::launch {
namespace {

std::string text_of_ring() {
  const Plan plan = test::grouped_ring();
  return print_launches(plan, test::blocks_of(plan), test::ring_launches());
}

std::string refusal(const std::string& text) {
  const Plan plan = test::grouped_ring();
  const Checked<LaunchPlan> launches = parse_launches(text, "l", plan, test::blocks_of(plan));
  return launches.ok() ? "accepted" : render(launches.error());
}

// An edit of the ring's launches, and its refusal.
struct Edit {
  std::string from;
  std::string to;
  std::string refusal;
};

void expect_refusals(const std::vector<Edit>& edits) {
  for (const Edit& edit : edits) {
    std::string text = text_of_ring();
    const std::size_t at = text.find(edit.from);
    ASSERT_NE(at, std::string::npos) << edit.from;
    EXPECT_EQ(refusal(text.replace(at, edit.from.size(), edit.to)), edit.refusal) << edit.to;
  }
}

TEST(LaunchRefusals, of_the_first_line) {
  const std::string hash = hash_plan(test::grouped_ring());
  const std::string other = hash_plan(test::ring());
  expect_refusals({
      {"launches version", "plan version", "error[T001]: l:1:1: expected `launches`, found `plan`"},
      {"version 1", "version 2",
       "error[V102]: l:1:18: launches version 2 cannot be read: this build reads versions 1 to 1; "
       "lower the schedule again with this build"},
      {"version 1", "version one", "error[T001]: l:1:18: expected a version, found `one`"},
      {hash, other,
       "error[V109]: l:1:25: these launches are of the plan with hash `" + other +
           "`, and this plan has `" + hash + "`; make the launches again from this plan"},
      {"target \"h200 sms 132\"", "target h200",
       "error[T001]: l:1:67: expected a target, found `h200`"},
      {"sms 132\"", "sms 132\" now",
       "error[T001]: l:1:82: expected the end of the line, found `now`"},
  });
  EXPECT_EQ(refusal(""), "error[T001]: l:1:1: expected `launches`, found the end of the text");
  EXPECT_EQ(refusal("// nothing\n\n"),
            "error[T001]: l:3:1: expected `launches`, found the end of the text");
}

TEST(LaunchRefusals, of_what_stands_above_the_launches) {
  expect_refusals({
      {"box 10", "box 11", "error[V103]: l:3:5: box id is 11, must be 10, the next one"},
      {"box 10 rank 0", "box 10 rank 2", "error[V103]: l:3:13: rank is 2, must be within 0..1"},
      {"buffer A", "buffer D",
       "error[V104]: l:3:33: buffer `D` is not in program `gemm` (did you mean `A`?)"},
      {"[., *, *]", "[., *]",
       "error[V105]: l:3:64: holds of buffer `A` has length 2, must have 3 (`m0`, `m1`, `K.all`)"},
      {"partials16 mm.C.acc@0", "partials16 mm.C.acc",
       "error[T001]: l:2:21: expected `@`, found `mm`"},
      {"partials16 mm.C.acc@0", "partials16 mm.C.ack@0",
       "error[V104]: l:2:12: allocation `mm.C.ack` is not in rank 0 (did you mean `mm.C.acc`?)"},
      {"partials16 mm.C.acc@0", "partials16 mm.C.acc@4",
       "error[V103]: l:2:21: rank is 4, must be within 0..1"},
      {"partials16 mm.C.acc@0 mm.C.acc@1", "partials16",
       "error[T001]: l:2:11: expected a name, found the end of the line"},
      {"signal 1 rank", "signal 2 rank",
       "error[V103]: l:5:8: signal id is 2, must be 1, the next one"},
      {"credit 1", "credits 1", "error[T001]: l:4:17: expected a kind of signal, found `credits`"},
      {"credit 1", "credit 2", "error[V103]: l:4:24: credit is 2, must be within 0..1"},
      {"sync 3", "sync 6", "error[V103]: l:5:22: sync is 6, must be within 0..5"},
      {"barrier 0", "barrier 1", "error[V103]: l:8:25: barrier is 1, must be within 0..0"},
      {"arrival 1 from", "arrival 2 from",
       "error[V103]: l:6:25: arrival is 2, must be within 0..1"},
      {"arrived 2", "arrived 12", "error[V103]: l:9:25: arrived is 12, must be within 0..11"},
      {"from 11", "from", "error[T001]: l:4:30: expected task, found the end of the line"},
      {"from 11", "from 12", "error[V103]: l:4:31: task is 12, must be within 0..11"},
      {"arrivals 8", "arrivals -8",
       "error[V103]: l:5:40: arrivals is -8, must be within 0..2147483647"},
      {"2 posted", "2 post", "error[T001]: l:9:34: expected the end of the line, found `post`"},
      {"in data", "in date", "error[T001]: l:10:36: expected `data`, found `date`"},
  });
}

TEST(LaunchRefusals, of_a_launch) {
  expect_refusals({
      {"launch 1 rank", "launch 2 rank",
       "error[V103]: l:13:8: launch id is 2, must be 1, the next one"},
      {"queue 1 does", "lane 1 does", "error[T001]: l:13:17: expected `queue`, found `lane`"},
      {"queue 1 does", "queue 6 does", "error[V103]: l:13:23: queue is 6, must be within 0..5"},
      {"does 4 6 8", "does 4 6 88", "error[V103]: l:13:34: task is 88, must be within 0..11"},
      {"lands 2", "lands", "error[T001]: l:30:31: expected task, found `awaits`"},
      {"after 0", "after 1", "error[V103]: l:13:42: launch is 1, must be within 0..0"},
      {"does 0 awaits", "does 0 after 0 awaits",
       "error[V103]: l:12:38: launch is 0, must be one of those above, and there is none"},
      {"begun 0", "begun x", "error[T001]: l:13:50: expected launch, found `x`"},
      {"begins epoch", "begins era", "error[T001]: l:12:48: expected `epoch`, found `era`"},
      {"bounds epoch", "bounds era", "error[T001]: l:30:49: expected `epoch`, found `era`"},
      {"awaits 0", "awaits 8", "error[V103]: l:12:39: signal is 8, must be within 0..7"},
      {"reserved 2", "reserved -1",
       "error[V103]: l:13:61: reserved SMs is -1, must be within 0..2147483647"},
      {"6+3", "6+4294967296",
       "error[V103]: l:13:74: what is added is 4294967296, must be within 0..4294967295"},
      {"6+3", "6+", "error[T001]: l:13:74: expected what is added, found the end of the line"},
      {"all_ready 2", "all_ready", "error[T001]: l:27:52: expected signal, found `pulled`"},
      {"by engine", "by kernel", "error[T001]: l:29:52: expected `engine`, found `kernel`"},
      {"does 4 6 8 after 0", "after 0 does 4 6 8",
       "error[T001]: l:13:33: expected the end of the line, found `does`"},
      {"begins epoch", "begins epoch awaits 1",
       "error[T001]: l:12:54: expected the end of the line, found `awaits`"},
  });
}

TEST(LaunchRefusals, of_a_kernel) {
  expect_refusals({
      {"kernel move times 2", "kernel",
       "error[T001]: l:25:9: expected a name, found the end of the line"},
      {"kernel move times 2", "kernel move times 0",
       "error[V103]: l:25:21: times is 0, must be within 1..65536"},
      {"kernel move times 2", "kernel move times 65537",
       "error[V103]: l:25:21: times is 65537, must be within 1..65536"},
      {"kernel fold joins 8", "kernel fold joins 0",
       "error[V103]: l:26:21: joins is 0, must be within 1..65536"},
      {"\"128x256x4 cut 2\"", "\"128",
       "error[T004]: l:14:20: string is not closed on its line; close it with `\"`"},
      {"arrival 1 reads", "arrival 0 reads",
       "error[V103]: l:16:13: arrival id is 0, must be 1, the next one"},
      {"A.home[0:3, *] B", "A.home[0:7, *] B",
       "error[V108]: l:15:28: a place in `A.home` has 0:7 along `M` of length 6"},
      {"A.home[0:3, *] B", "A.home[3:3, *] B",
       "error[V108]: l:15:28: a place in `A.home` has 3:3 along `M` of length 6"},
      {"A.home[0:3, *] B", "A.home[*] B",
       "error[V108]: l:15:27: a place in `A.home` has length 1, must have 2 (`M`, `K`)"},
      {"A.home[0:3, *] B", "A.home[*, *, 0:1] B",
       "error[V108]: l:15:27: a place in `A.home` has length 3, must have 2 (`M`, `K`)"},
      {"A.home[0:3, *] B", "A.home[0, *] B", "error[T001]: l:15:29: expected `:`, found `,`"},
      {"A.home[0:3, *] B", "A.home B", "error[T001]: l:15:28: expected `[`, found `B`"},
      {"A.home[0:3, *] B", "A.hom[0:3, *] B",
       "error[V104]: l:15:21: allocation `A.hom` is not in rank 0 (did you mean `A.home`?)"},
      {"A.home[0:3, *] B", "A.home@2[0:3, *] B",
       "error[V103]: l:15:28: rank is 2, must be within 0..1"},
      {"when 1", "when", "error[T001]: l:16:59: expected signal, found the end of the line"},
      {"panel 1", "panel 2", "error[V103]: l:19:11: panel id is 2, must be 1, the next one"},
      {"meets 0 1", "meets 0 2", "error[V103]: l:17:21: arrival is 2, must be within 0..1"},
      {"meets 0 1", "meet 0 1", "error[T001]: l:17:13: expected `meets`, found `meet`"},
      {"] bf16", "] bf61", "error[T001]: l:17:49: expected a dtype, found `bf61`"},
      {"adds to", "adds at", "error[T001]: l:19:51: expected `to`, found `at`"},
      {" f32\n", "\n", "error[T001]: l:19:72: expected a dtype, found the end of the line"},
      {"fused 0", "fused 2", "error[V103]: l:17:60: fused store is 2, must be within 0..1"},
      {"addend reads", "addend", "error[T001]: l:18:14: expected `reads`, found `mm`"},
      {"map mm.0", "map nn.0",
       "error[V104]: l:20:11: nest `nn` is not in program `gemm` (did you mean `mm`?)"},
      {"map mm.0", "map mm.1",
       "error[V104]: l:20:11: statement `mm.1` is not in nest `mm` of 1 statements"},
      {"map mm.0 reads", "map mm.0",
       "error[T001]: l:20:16: expected the end of the line, found `B`"},
      {"fused store 1", "fused store 2",
       "error[V103]: l:22:17: fused store id is 2, must be 1, the next one"},
      {"fused store 0 raises 5\n    fused store 1 raises 4+8",
       "fused copy reads A.home[*, *] stores A.home[*, *] blocks 12",
       "error[V103]: l:17:60: fused store is 0, must be one of the kernel's, and there is none"},
      {"raises 4 blocks 12", "raises 4",
       "error[T001]: l:23:73: expected `blocks`, found the end of the line"},
      {"1[0:3, *] raises 4 blocks 12", "1[0:3, *] raises 4 blocks 11",
       "error[V103]: l:24:70: blocks is 12, must be 11, as above"},
      {"copy reads A.home[0:3, *]", "copy",
       "error[T001]: l:23:16: expected `reads`, found `stores`"},
  });
}

// A misplaced kind of line: the message lists the kinds that may stand there.
TEST(LaunchRefusals, of_a_line_out_of_its_place) {
  expect_refusals({
      {"signal 1 rank", "partials16 A.home@0\nsignal 1 rank",
       "error[T001]: l:5:1: expected `signal`, `launch` or the end of the text, found "
       "`partials16`"},
      {"launch 0 rank", "kernel move\nlaunch 0 rank",
       "error[T001]: l:12:1: expected `signal`, `launch` or the end of the text, found `kernel`"},
      {"launch 0 rank", "lunch 0 rank",
       "error[T001]: l:12:1: expected `signal`, `launch` or the end of the text, found `lunch`"},
      {"  kernel move", "    arrival 2\n  kernel move",
       "error[T001]: l:25:5: expected `launch`, `kernel`, `fused copy` or the end of the text, "
       "found `arrival`"},
      {"    panel 1", "    arrival 2\n    panel 1",
       "error[T001]: l:19:5: expected `launch`, `kernel`, `panel`, `addend`, `map`, `fused store`, "
       "`fused copy` or the end of the text, found `arrival`"},
      {"    arrival 0", "      addend reads C.home[*, *]\n    arrival 0",
       "error[T001]: l:15:7: expected `launch`, `kernel`, `arrival`, `panel`, `fused store`, "
       "`fused copy` or the end of the text, found `addend`"},
      {"fused store", "fused stores",
       "error[T001]: l:21:5: expected `launch`, `kernel`, `panel`, `map`, `fused store`, `fused "
       "copy` or the end of the text, found `fused`"},
      {"signal 0 rank", "? 0 rank", "error[T002]: l:4:1: character `?` cannot start a token"},
  });
}

// A truncated or mistyped text is refused with a position, or still parses back to itself.
TEST(LaunchRefusals, have_a_position_or_the_text_still_reads_back) {
  const Plan plan = test::grouped_ring();
  const Blocks blocks = test::blocks_of(plan);
  const std::string whole = text_of_ring();
  const std::string pieces = "0123456789 .,:[]@*+ab\n";
  std::mt19937 random(1);
  const auto below = [&](std::size_t end) { return random() % end; };
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string text = whole;
    for (std::size_t edits = 1 + below(3); edits > 0; --edits) {
      const std::size_t at = below(text.size());
      const std::size_t kind = below(3);
      if (kind == 0) text.erase(at, 1 + below(6));
      if (kind == 1) text.insert(at, 1, pieces[below(pieces.size())]);
      if (kind == 2) text[at] = pieces[below(pieces.size())];
    }
    const Checked<LaunchPlan> launches = parse_launches(text, "l", plan, blocks);
    if (launches.ok()) {
      const std::string again = print_launches(plan, blocks, *launches);
      const Checked<LaunchPlan> back = parse_launches(again, "l", plan, blocks);
      ASSERT_TRUE(back.ok()) << render(back.error()) << again;
      EXPECT_TRUE(*back == *launches) << text;
      continue;
    }
    ++refused;
    ASSERT_TRUE(launches.error().where.has_value()) << text;
    const std::int64_t lines = std::count(text.begin(), text.end(), '\n') + 1;
    EXPECT_GE(launches.error().where->line, 1);
    EXPECT_LE(launches.error().where->line, lines + 1);
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace harpe::launch
