#include <gtest/gtest.h>

#include "tests/unit/verify/plans.h"
#include "verify/model.h"

// Routed programs: the blocks that an iteration touches, and parts of blocks for some iterations.
namespace harpe::test {
namespace {

struct Text {
  std::string decls;
  std::string dispatch = "over (E, C) {\n    Xe = copy(X[T=R.T])";
  std::string combine = "over (T, Kc) {\n    Y sum= pick(Xe[E=R.E, C=R.C])";
  std::string layout = "  layout C slab(c0, t0)\n";
};

// Tokens and slots on two blocks, experts on four; two ranks.
std::string moe(const Text& text) {
  return "program moe {\n  axis T = dyn 8\n  axis Kc = 2\n  axis E = 4\n  axis C = dyn 8 of E\n"
         "  buffer X : f32[T] in\n  buffer Idx : i32[T, Kc] in\n  buffer Xe : f32[E, C] out\n"
         "  buffer Y : f32[T] out\n  route R : (E, C) <- (T, Kc) by Idx\n  leaf pick\n" +
         text.decls + "  nest dispatch " + text.dispatch + "\n  }\n  nest combine " + text.combine +
         "\n  }\n}\nmesh one = gpu:2\ncommir push for moe on one {\n"
         "  split T = t0:2 * t1:_\n  split E = e0:2 * e1:2 * e2:_\n  split C = c0:2 * c1:_\n" +
         text.layout +
         "  place X[t0@gpu]\n  place Y[t0@gpu]\n  place Xe[e0@gpu]\n"
         "  nest dispatch {\n    par e0 on gpu\n    stage X over gpu direct grain e1\n    leaf\n  "
         "}\n"
         "  nest combine {\n    par t0 on gpu\n    stage Xe over gpu direct\n    leaf\n  }\n}\n";
}

Checked<verifier::Model> model_of(const Text& text) {
  const HandPlan hand(moe(text));
  return verifier::Model::make(hand.plan.program, hand.plan.mesh, hand.plan.form);
}

std::string refusal(const Text& text) {
  const auto model = model_of(text);
  return model.ok() ? "accepted" : render(model.error());
}

using Numbers = std::vector<std::int64_t>;

std::vector<std::string> space_of(const verifier::Model& model, std::size_t nest) {
  std::vector<std::string> names;
  for (const int digit : model.nests[nest].space.digits) {
    names.push_back(model.digits[static_cast<std::size_t>(digit)].name);
  }
  return names;
}

TEST(VerifyRoutes, take_a_dynamic_axis_at_its_capacity) {
  const auto model = model_of({});
  ASSERT_TRUE(model.ok()) << render(model.error());
  EXPECT_EQ(model->axes[0].end, Numbers({4, 8}));
  EXPECT_EQ(model->axes[3].end, Numbers({4, 8}));
}

TEST(VerifyRoutes, read_the_tokens_that_a_slab_is_for) {
  const auto model = model_of({});
  ASSERT_TRUE(model.ok()) << render(model.error());
  EXPECT_EQ(space_of(*model, 0), std::vector<std::string>({"e0", "e1", "e2", "c0", "c1"}));
  const verifier::AccessModel& tokens = model->statements[0].operands[0];
  EXPECT_TRUE(tokens.routed);
  EXPECT_EQ(tokens.strides, Numbers({0, 0, 0, 1, 0}));
  EXPECT_EQ(tokens.offsets, Numbers({0}));
}

TEST(VerifyRoutes, read_all_tokens_without_a_slab) {
  const auto model = model_of({.decls = "", .layout = ""});
  ASSERT_TRUE(model.ok()) << render(model.error());
  EXPECT_EQ(model->statements[0].operands[0].strides, Numbers({0, 0, 0, 0, 0}));
  EXPECT_EQ(model->statements[0].operands[0].offsets, Numbers({0, 1}));
}

TEST(VerifyRoutes, run_over_tokens_and_experts_where_a_nest_is_over_choices) {
  const auto model = model_of({});
  ASSERT_TRUE(model.ok()) << render(model.error());
  EXPECT_EQ(space_of(*model, 1), std::vector<std::string>({"t0", "t1", "e0", "e1", "e2"}));
  const verifier::AccessModel& slots = model->statements[1].operands[0];
  EXPECT_EQ(slots.strides, Numbers({1, 0, 4, 2, 2}));
  EXPECT_EQ(slots.offsets, Numbers({0}));
}

TEST(VerifyRoutes, know_no_tie_through_an_axis_with_other_blocks) {
  const auto model = model_of({.decls = "  axis S = dyn 8\n  buffer V : f32[S] in\n",
                               .dispatch = "over (E, C) {\n    Xe = copy(V[S=R.T])"});
  ASSERT_TRUE(model.ok()) << render(model.error());
  EXPECT_EQ(model->statements[0].operands[0].strides, Numbers({0, 0, 0, 0, 0}));
}

TEST(VerifyRoutes, refuse_slabs_of_other_digits) {
  const auto with = [](const std::string& slab) {
    return refusal({.decls = "", .layout = "  layout " + slab + "\n"});
  };
  const std::string misfit =
      "error[V201]: normal form `push` does not fit its program and mesh: layout `slab` ";
  EXPECT_EQ(with("C slab(c0)"), misfit + "of axis `C` takes pairs of digits");
  EXPECT_EQ(with("C slab(c0, k0)"), misfit + "ties `c0` to `k0`, one of which is no digit");
  EXPECT_EQ(with("C slab(c0, e0)"),
            misfit + "ties `c0` to `e0`, and no route has its slots and tokens on their axes");
  EXPECT_EQ(with("T slab(t0, c0)"),
            misfit + "ties `t0` to `c0`, and no route has its slots and tokens on their axes");
  EXPECT_EQ(with("C slab(c1, t0)"), misfit + "ties `c1` to `t0`, which have 1 and 2 values");
  EXPECT_EQ(with("C slab(c0, t0, c0, t0)"),
            misfit + "ties `c0` to `t0`, one of which is tied already");
}

TEST(VerifyRoutes, refuse_what_they_have_no_rule_for) {
  const auto cannot = [](const std::string& what) {
    return "error[V202]: " + what + " cannot be verified";
  };
  EXPECT_EQ(refusal({.decls = "  route Q : (E, C) <- (T, Kc) by Idx\n",
                     .dispatch = "over (E, C) {\n    Xe = pick(X[T=R.T], X[T=Q.T])"}),
            cannot("nest `dispatch`, which goes through two routes,"));
  EXPECT_EQ(
      refusal({.decls = "", .combine = "over (T, Kc, E) {\n    Y sum= pick(Xe[E=R.E, C=R.C])"}),
      cannot("nest `combine`, over the choices of `R` and over its experts,"));
  EXPECT_EQ(refusal({.decls = "  route Q : (E) <- (T) by Idx\n",
                     .dispatch = "over (E, C) {\n    Xe = copy(X[T=Q.T])"}),
            cannot("nest `dispatch`, whose route `Q` does not relate (expert, slot) to (token, "
                   "choice),"));
  EXPECT_EQ(refusal({.decls = "",
                     .combine = "over (T, Kc) {\n    Y sum= pick(X)\n    Xe[E=R.E, C=R.C] = "
                                "pick(X)"}),
            cannot("nest `combine`, which writes `Xe` through a route,"));
}

// Xe gathered from X: a rank reads its own tokens at home, and the other rank's from parts, one for
// each local expert.
// 0 1 entries   2 3 copies for e1=0   4 5 copies for e1=1   6 7 computes   8 9 exits
struct Dispatch {
  Dispatch() : hand(text()) {
    HandPlan& p = hand;
    x = p.slots("X.home", "X", Level::Home, DType::F32, ".");
    xe = p.slots("Xe.home", "Xe", Level::Home, DType::F32, ".**");
    for (const char* const name : {"st.0", "st.1"}) {
      stage.push_back(p.slots(name, "X", Level::Stage, DType::F32, "."));
    }
    for (std::int64_t r = 0; r < 2; ++r) p.entry(r);
    const std::string own[] = {"0", "1"};
    for (std::int32_t part = 0; part < 2; ++part) {
      for (std::size_t r = 0; r < 2; ++r) {
        const TaskId id = p.copy(static_cast<std::int64_t>(r), p.read(x[1 - r], own[1 - r]),
                                 stage[static_cast<std::size_t>(part)][r]);
        p.at(id).writes[0].when = RouteChoice{.digit = "e1", .value = part};
        p.at(id).bytes = 16;  // f32: half of X
      }
    }
    for (std::size_t r = 0; r < 2; ++r) {
      std::vector<Ref> reads = {p.read(x[r], own[r])};
      for (std::int32_t part = 0; part < 2; ++part) {
        reads.push_back(p.read(stage[static_cast<std::size_t>(part)][r], own[1 - r]));
        reads.back().when = RouteChoice{.digit = "e1", .value = part};
      }
      p.compute(static_cast<std::int64_t>(r), own[r] + " * *", reads,
                {p.ref(xe[r], WriteMode::Set, own[r] + " * *")});
    }
    for (std::int64_t r = 0; r < 2; ++r) p.exit(r);
    const std::pair<int, int> edges[] = {{0, 2}, {1, 2}, {0, 3}, {1, 3}, {4, 6},
                                         {5, 7}, {6, 8}, {7, 9}, {4, 9}, {5, 8}};
    for (const auto& [from, to] : edges) p.sync(TaskId(from), TaskId(to));
  }

  // Without the nest that gathers back.
  static std::string text() {
    std::string text = moe({});
    const auto cut = [&](const std::string& from, const std::string& to) {
      const std::size_t at = text.find(from);
      text.erase(at, text.find(to, at) + to.size() - at);
    };
    cut("  nest combine over", "}\n");
    cut("  nest combine {", "}\n");
    cut("  buffer Y", "\n");
    cut("  place Y", "\n");
    return text;
  }

  HandPlan hand;
  std::vector<AllocId> x, xe;
  std::vector<std::vector<AllocId>> stage;  // per part, per rank
};

TEST(VerifyRoutes, accept_tokens_in_parts) { EXPECT_EQ(finding(Dispatch().hand.plan), "verified"); }

TEST(VerifyRoutes, accept_a_whole_block_where_a_part_would_do) {
  Dispatch p;
  p.hand.at(TaskId(2)).writes[0].when.reset();
  EXPECT_EQ(finding(p.hand.plan), "verified");
}

TEST(VerifyRoutes, refuse_a_part_as_the_whole) {  // V514
  Dispatch p;
  p.hand.at(TaskId(6)).reads[1].when.reset();
  EXPECT_EQ(finding(p.hand.plan),
            "error[V514]: task 6 (compute dispatch.0 on rank 0) reads `X` [t0=1] in `st.0` of rank "
            "0 for all iterations, but the slot holds only what iterations with e1=0 need");
}

TEST(VerifyRoutes, refuse_a_part_that_is_for_other_iterations) {
  Dispatch p;
  std::swap(p.hand.at(TaskId(6)).reads[1].when, p.hand.at(TaskId(6)).reads[2].when);
  EXPECT_EQ(finding(p.hand.plan),
            "error[V514]: task 6 (compute dispatch.0 on rank 0) reads `X` [t0=1] in `st.0` of rank "
            "0 for iterations with e1=1, but the slot holds only what iterations with e1=0 need");
}

TEST(VerifyRoutes, refuse_iterations_that_no_part_is_for) {
  Dispatch p;
  p.hand.at(TaskId(6)).reads.pop_back();
  EXPECT_EQ(
      finding(p.hand.plan),
      "error[V502]: task 6 (compute dispatch.0 on rank 0) computes iteration [e0=0, e1=1, c0=1] "
      "and does not read `X` [t0=1]");
}

TEST(VerifyRoutes, refuse_a_part_of_another_part) {
  Dispatch p;
  Task& copy = p.hand.at(TaskId(4));
  copy.reads[0].alloc = p.stage[0][0];
  EXPECT_EQ(finding(p.hand.plan),
            "error[V514]: task 6 (compute dispatch.0 on rank 0) reads `X` [t0=1] in `st.1` of rank "
            "0 for iterations with e1=1, but the slot holds only what iterations with e1=0 need");
}

TEST(VerifyRoutes, refuse_to_cut_what_nothing_can) {  // V215
  const auto with = [](int task, bool write, const std::string& digit, std::int32_t value) {
    Dispatch p;
    Task& changed = p.hand.at(TaskId(task));
    (write ? changed.writes : changed.reads)[0].when = RouteChoice{.digit = digit, .value = value};
    return finding(p.hand.plan);
  };
  const std::string home = "error[V215]: task 6 refers to `X.home` when ";
  EXPECT_EQ(
      with(2, false, "e1", 0),
      "error[V215]: task 2 refers to `X.home` when e1=0: only operands read and blocks copied "
      "can be cut");
  EXPECT_EQ(with(6, false, "k0", 0), home + "k0=0: the form has no such digit");
  EXPECT_EQ(with(6, false, "e1", 2), home + "e1=2: the digit has 2 values");
  EXPECT_EQ(with(6, false, "t0", 0), home + "t0=0: nest `dispatch` does not run over the digit");
  EXPECT_EQ(with(2, true, "Kc.all", 0),
            "error[V215]: task 2 refers to `st.0` when Kc.all=0: 0 routes could mean it");
}

}  // namespace
}  // namespace harpe::test
