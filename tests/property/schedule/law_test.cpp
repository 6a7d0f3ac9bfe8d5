// The law of every primitive, on random scripts. A refused step leaves the state unchanged and its
// refusal is readable. An accepted form parses back from its text and from its derived script.

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "ir/text.h"
#include "schedule/primitive.h"
#include "schedule/replay.h"
#include "schedule/source_file.h"

namespace harpe {
namespace {

constexpr std::string_view kPrograms = R"(
mesh flat = x:4
mesh deep = x:2, y:3
program gemm {
  axis M = 12
  axis N = 8
  axis K = 10
  buffer A : bf16[M, K] in
  buffer B : bf16[K, N] in
  buffer C : bf16[M, N] out
  leaf matmul flops 2*M*N*K
  nest mm over (M, N, K) {
    C sum= matmul(A, B)
  }
}
program chain {
  axis T = 8
  axis R = 6
  axis W = 4
  buffer x : f32[T, R, W] in
  buffer t : f32[T, R, W] temp
  buffer r : f32[T, R] in
  buffer s : f32[T, R] out
  leaf copy
  nest one over (T, R) whole (W) seq (T) {
    t = copy(x)
  }
  nest two over (T, R, W) {
    s sum= fold(t, r)
  }
}
)";

class StepGenerator {
 public:
  StepGenerator(std::mt19937_64& random, const ScheduleState& state)
      : random_(random), state_(state) {}

  Primitive make() {
    const std::string nest = pick(nests());
    const std::string buffer = pick(buffers());
    const MeshRef axes = pick_axes();
    switch (below(20)) {
      case 0:
      case 1:
        return Tile{pick(rarely() ? digits() : program_axes()), {pick_factor()}, fresh(2)};
      case 2:
        return Tile{pick(program_axes()), {pick_factor(), pick_factor()}, fresh(rarely() ? 2 : 3)};
      case 3:
        return Join{pick(digits()), pick(digits()), fresh(1)};
      case 4:
        return RefineAxis{state_.mesh.name, pick_axes()[0], {2, 2}, fresh(2)};
      case 5:
      case 6:
        return Shard{buffer, pick(digits()), axes};
      case 7:
        return Balance{pick(program_axes()), pick_word({BalanceKind::Zigzag, BalanceKind::Stripe}),
                       LayoutArgs{Name{pick(digits())}, Name{pick(digits())}}};
      case 8:
      case 9:
        return Parallelize{nest, pick(digits()), axes};
      case 10:
      case 11:
        return Serialize{nest, pick(digits())};
      case 12:
        return Shift{{nest, pick(digits())}, axes, below(3)};
      case 13:
        return Reverse{{nest, pick(digits())}};
      case 14:
        return Reorder{nest, {pick(digits()), pick(digits())}};
      default:
        return make_move(nest, buffer, axes);
    }
  }

 private:
  Primitive make_move(const std::string& nest, const std::string& buffer, const MeshRef& axes) {
    const auto how = pick_word({How::Bulk, How::Relay, How::Direct, How::Inline, How::OneShot});
    const auto at = rarely() ? std::optional<std::string>() : pick(digits());
    const auto by = pick_word({Initiator::Src, Initiator::Dst});
    switch (below(12)) {
      case 0:
      case 1:
        return Stage{nest, {buffer}, axes, at, how, by};
      case 2:
      case 3:
        return Drain{nest, {buffer}, axes, at, how, std::nullopt};
      case 4:
        return Pipeline{nest, {buffer}, axes, std::nullopt, below(4)};
      case 5:
        return ChunkMove{nest, {buffer}, axes, std::nullopt, pick(digits())};
      case 6:
        return Bind{nest,
                    {buffer},
                    axes,
                    std::nullopt,
                    pick_word({Via::Ce, Via::Sm, Via::Tma, Via::Nccl, Via::Proxy, Via::Ibgda})};
      case 7:
        return SignalBy{nest,
                        {buffer},
                        axes,
                        std::nullopt,
                        pick_word({Signal::Event, Signal::Flag, Signal::Counter, Signal::Batched}),
                        rarely() ? std::optional(Fence::PerDestination) : std::nullopt};
      case 8:
        return Compress{
            nest, {buffer}, axes, std::nullopt, pick_word({DType::F16, DType::F32, DType::I8})};
      case 9:
        return ChunkLeaf{nest, "leaf", pick(digits()), std::nullopt};
      case 10:
        return Partial{buffer, pick_word({Monoid::Sum, Monoid::Max}), axes};
      default:
        return Patch{nest, Quoted{rarely() ? "gemm_sm90" : "cpu_gemm"}, below(140)};
    }
  }

  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
  }
  bool rarely() { return below(4) == 0; }
  template <class T>
  T pick_word(std::initializer_list<T> words) {
    return words.begin()[static_cast<std::size_t>(below(static_cast<std::int64_t>(words.size())))];
  }
  std::string pick(const std::vector<std::string>& names) {
    return names.empty() || below(20) == 0 ? "nowhere" : names[random_() % names.size()];
  }
  std::int64_t pick_factor() { return pick_word<std::int64_t>({1, 2, 2, 3, 3, 4, 4, 6, 6, 0}); }
  MeshRef pick_axes() {
    MeshRef axes;
    const Mesh mesh = refined(state_.mesh, state_.form);
    for (const MeshAxis& axis : mesh.axes) {
      if (axes.empty() || rarely()) axes.push_back(axis.name);
    }
    if (below(2) == 0) axes = {mesh.axes.back().name};
    return axes;
  }
  std::vector<std::string> fresh(std::size_t count) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < count; ++i) names.push_back("d" + std::to_string(below(60)));
    return names;
  }
  std::vector<std::string> nests() const {
    std::vector<std::string> names;
    for (const NestForm& nest : state_.form.nests) names.push_back(nest.nest);
    return names;
  }
  std::vector<std::string> buffers() const {
    std::vector<std::string> names;
    for (const Buffer* buffer : buffers_of(state_.program)) names.push_back(buffer->name);
    return names;
  }
  std::vector<std::string> program_axes() const {
    std::vector<std::string> names;
    for (const Axis* axis : axes_of(state_.program)) names.push_back(axis->name);
    return names;
  }
  std::vector<std::string> digits() const {
    std::vector<std::string> names;
    for (const Split& split : state_.form.splits) {
      for (const Digit& digit : split.digits) names.push_back(digit.name);
    }
    return names;
  }

  std::mt19937_64& random_;
  const ScheduleState& state_;
};

void expect_readable(const ScheduleState& state) {
  const std::string text = print(state.form);
  const Checked<SourceFile> file = parse_source(text);
  ASSERT_TRUE(file.ok()) << render(file.error()) << "\n" << text;
  EXPECT_EQ(std::get<NormalForm>(file->items.at(0)), state.form);
}

void expect_derivable(const ScheduleState& state) {
  const Script script = derive_script(state.program, state.mesh, state.form);
  const Checked<NormalForm> again = replay(state.program, state.mesh, script);
  ASSERT_TRUE(again.ok()) << render(again.error()) << "\n" << print(state.form) << print(script);
  EXPECT_EQ(*again, canonicalise(state.program, state.form)) << print(script);
}

struct Tally {
  std::map<std::string_view, std::pair<int, int>> primitives;  // accepted, refused
};

void run_random_script(std::uint64_t seed, const Program& program, const Mesh& mesh, Tally& tally) {
  SCOPED_TRACE("seed " + std::to_string(seed) + ", " + program.name + " on " + mesh.name);
  std::mt19937_64 random(seed);
  ScheduleState state = start_schedule(program, mesh, "random");
  for (int i = 0; i < 60; ++i) {
    const Primitive primitive = StepGenerator(random, state).make();
    const Step step = to_step(primitive);
    SCOPED_TRACE(print(step));
    ASSERT_EQ(*read_step(step), primitive);
    const ScheduleState before = state;
    Checked<ScheduleState> after = run(state, primitive);
    ASSERT_EQ(state, before);
    auto& [accepted, refused] =
        tally.primitives[std::visit([](const auto& p) { return p.kName; }, primitive)];
    if (!after.ok()) {
      ++refused;
      ASSERT_FALSE(render(after.error()).empty());
      continue;
    }
    ++accepted;
    EXPECT_TRUE(*after != before || primitive.index() == Primitive(Replicate{}).index());
    state = std::move(after).value();
    expect_readable(state);
  }
  expect_derivable(state);
}

TEST(PrimitiveLaw, holds_on_random_scripts) {
  const Checked<SourceFile> file = parse_source(kPrograms);
  ASSERT_TRUE(file.ok()) << render(file.error());
  Tally tally;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    for (const Program* program : items_of<Program>(*file)) {
      for (const Mesh* mesh : items_of<Mesh>(*file)) {
        run_random_script(seed, *program, *mesh, tally);
        if (HasFatalFailure()) return;
      }
    }
  }
  // The generator produces both accepted and refused uses of every primitive.
  for (const auto& [name, counts] : tally.primitives) {
    EXPECT_GT(counts.first, 0) << name << " is never accepted";
    EXPECT_GT(counts.second, 0) << name << " is never refused";
  }
}

}  // namespace
}  // namespace harpe
