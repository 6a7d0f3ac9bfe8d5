#include "tests/property/verify/field_edits.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/text.h"
#include "lower/lower.h"
#include "run/backend.h"
#include "run/run.h"
#include "tests/property/verify/further_plans.h"
#include "tests/property/verify/routed_forms.h"
#include "tests/support/internal_error.h"
#include "verify/verify.h"

// Edits every field of a plan that an executor reads. The verifier refuses the plan, or CPU ranks
// compute the same bits as with the original plan.
namespace harpe::test {
namespace {

constexpr std::size_t kPerField = 6;
constexpr std::uint64_t kSeed = 23;

// Edits that may pass, and why they are harmless on GPUs too, which CPU ranks do not show.
const std::map<std::string, std::string> kHarmless = {
    {"alloc.offset", "blocks begin at any element of a slot, so a slot may at any of its arena"},
    {"alloc.offset-everywhere", "as alloc.offset"},
    {"alloc.offset-of-the-last", "as alloc.offset"},
    {"alloc.bytes", "a larger slot is memory that nothing uses"},
    {"alloc.bytes-everywhere", "as alloc.bytes"},
    {"alloc.level-everywhere", "a slot of what is moved is read alike at every such level"},
    {"alloc.level", "as alloc.level-everywhere"},
    {"alloc.holds", "a digit with one value in the slot is held or not alike"},
    {"alloc.holds-everywhere", "as alloc.holds"},
    {"alloc.dtype", "a slot that nothing reads or writes"},
    {"lane.kind", "a lane without tasks, or whose tasks run on both kinds"},
    {"lane.rank", "a lane without tasks"},
    {"task.lane", "the order that is left was proved"},
    {"task.kind", "pack, unpack and copy move blocks alike"},
    {"task.statement", "combinations of one monoid and target are alike"},
    {"task.kernel", "launches were proved to fit"},
    {"task.via", "what starts no transfer has no transport"},
    {"task.via-and-its-lane", "every transport takes the same blocks to the same place"},
    {"task.how", "no executor reads it; the simulator prices it"},
    {"task.collective", "an all-gather is an all-to-all whose parts are equal"},
    {"task.group", "a group of other members was proved"},
    {"read.alloc", "a replica of the same blocks"},
    {"read.box", "blocks without elements"},
    {"read.when", "a whole block serves every part"},
    {"read.twice", "a leaf finds an operand in the first reference that has the block"},
    {"read.order", "operands are found by their buffers, and sums were proved"},
    {"write.alloc", "a slot that holds nothing at the time"},
    {"write.box", "blocks without elements"},
    {"write.order", "targets are found by their buffers"},
    {"write.when", "more of a block than its readers need"},
    {"transfer.order", "the moves of a transfer are independent"},
    {"sync.from", "another order that was proved"},
    {"sync.to", "another order that was proved"},
    {"sync.kind", "a flag is a counter of one"},
    {"sync.flag", "a word of its own"},
    {"sync.fence", "a stronger fence, or one that nobody needs"},
    {"barrier.flag", "a word of its own"},
    {"barrier.from", "another order that was proved"},
    {"barrier.to", "another order that was proved"},
};

// Wire types that differ from both ends, images of strided regions, states of two targets, and sums
// that several ranks compute redundantly.
constexpr const char* kTyped = R"(
program move {
  axis M = 9
  axis N = 48
  buffer x : f32[M, N] in
  buffer y : f32[M, N] out
  nest n over (M, N) {
    y = copy(x)
  }
}
program gemm {
  axis M = 12
  axis N = 10
  axis K = 14
  buffer a : bf16[M, K] in
  buffer b : bf16[K, N] in
  buffer c : bf16[M, N] out
  nest mm over (M, N, K) {
    c sum= matmul(a, b)
  }
}
program attend {
  axis B = 1
  axis Sq = 10
  axis Skv = 14
  axis H = 2
  axis G = 1
  axis D = 8
  buffer q : bf16[B, Sq, (H, G), D] in
  buffer k : bf16[B, Skv, H, D] in
  buffer v : bf16[B, Skv, H, D] in
  buffer o : bf16[B, Sq, (H, G), D] out
  buffer l : f32[B, (H, G), Sq] out
  nest fwd over (B, H, G, Sq, Skv) whole (D) {
    (o, l) lse= attn_fwd(q, k, v)
  }
}
mesh two = x:2
mesh six = a:2, b:3
commir gathered for move on two {
  split M = m0:2 * mr:_
  place x[m0@x]
  place y[]
  nest n {
    stage x over x bulk via nccl
    leaf
  }
}
commir rounded for move on two {
  split M = m0:2 * mr:_
  place x[m0@x]
  place y[]
  nest n {
    stage x over x bulk wire f16 via ce
    leaf
  }
}
commir packed for move on two {
  split N = n0:2 * nr:_
  place x[n0@x]
  place y[]
  nest n {
    stage x over x bulk by src wire bf16 via proxy signal flag fence put
    leaf
  }
}
commir reduced for gemm on two {
  split M = m0:2 * mr:_
  split K = k0:2 * kr:_
  place a[k0@x]
  place b[k0@x]
  place c[m0@x]
  nest mm {
    par k0 on x
    drain c over x bulk wire f16 via nccl
    leaf
  }
}
commir pushed for gemm on two {
  split M = m0:2 * mr:_
  split K = k0:2 * kr:_
  place a[k0@x]
  place b[k0@x]
  place c[m0@x]
  nest mm {
    par k0 on x
    for m0 skew x + 1
    drain c over x relay by src depth 2 via ce signal event
    leaf
  }
}
commir replicated for gemm on two {
  split K = k0:2 * kr:_
  place a[k0@x]
  place b[k0@x]
  place c[]
  nest mm {
    par k0 on x
    drain c over x bulk via ce
    leaf
  }
}
commir twice for gemm on six {
  split M = m0:3 * mr:_
  split K = k0:3 * kr:_
  place a[k0@b]
  place b[k0@b]
  place c[m0@b]
  nest mm {
    par k0 on b
    drain c over b bulk via ce
    leaf
  }
}
commir decode for attend on two {
  split Skv = k0:2 * kr:_
  split H = h0:2
  place q[]
  place k[k0@x]
  place v[k0@x]
  place o[h0@x]
  place l[h0@x]
  nest fwd {
    par k0 on x
    drain o over x bulk
    drain l over x bulk
    leaf
  }
}
commir ulysses for attend on two {
  split Sq = q0:2 * qr:_
  split H = h0:2
  place q[q0@x]
  place k[]
  place v[]
  place o[q0@x]
  place l[q0@x]
  nest fwd {
    par h0 on x
    stage q over x bulk via nccl
    drain o over x bulk via nccl
    drain l over x bulk via nccl
    leaf
  }
}
)";

template <class T>
T must(Checked<T> result) {
  HP_CHECK(result.ok(), render(result.error()));
  return std::move(result).value();
}

std::vector<Lowered> lowered_typed() {
  Cursor cursor = must(Cursor::open(kTyped));
  std::map<std::string, Program> programs;
  while (cursor.at("program")) {
    Program program = must(parse_program(cursor));
    const std::string name = program.name;
    programs.emplace(name, std::move(program));
  }
  std::map<std::string, Mesh> meshes;
  while (cursor.at("mesh")) {
    const Mesh mesh = must(parse_mesh(cursor));
    meshes.emplace(mesh.name, mesh);
  }
  std::vector<Lowered> found;
  while (!cursor.at_end()) {
    const NormalForm form = must(parse_form(cursor));
    Plan plan = must(lower(programs.at(form.program), meshes.at(form.mesh), form));
    found.push_back({form.name, std::move(plan)});
  }
  return found;
}

// Layers of experts that CPU ranks can run.
std::vector<Lowered> lowered_experts(std::size_t count) {
  std::vector<Lowered> found;
  for (std::uint64_t i = 0; found.size() < count; ++i) {
    std::mt19937_64 random(kSeed * 1'000'003 + i);
    const Example example = draw_expert_form(random);
    Checked<Plan> plan = lower(example.program, example.mesh, example.form);
    if (!plan.ok() || !make_executor(*plan, {}).ok()) continue;
    found.push_back({"experts " + std::to_string(i), std::move(plan).value()});
  }
  return found;
}

TensorMap inputs_of(const Plan& plan) {
  RunRequest request;
  request.seed = kSeed;
  return must(prepare_run(plan, request));
}

// The outputs, or nothing if the executor refuses the plan.
std::optional<TensorMap> execute(const Plan& plan, const TensorMap& inputs) {
  Checked<std::unique_ptr<Executor>> executor = make_executor(plan, {});
  if (!executor.ok()) return std::nullopt;
  for (const auto& [name, tensor] : inputs) {
    HP_CHECK((*executor)->set_input(name, tensor).ok(), "CPU ranks take their inputs");
  }
  const auto stats = (*executor)->run({});
  HP_CHECK(stats.ok(), "a proved plan ends");
  return must(gather_outputs(**executor, plan.program));
}

bool equal_bits(const TensorMap& a, const TensorMap& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.data == y.second.data;
  });
}

struct Count {
  int made = 0;
  int refused = 0;
  int unsupported = 0;
  int equal = 0;
  std::map<std::string, int> codes;
};

class Judge {
 public:
  explicit Judge(std::vector<Lowered> plans) : plans_(std::move(plans)) {}

  void judge(std::size_t per_field) {
    std::mt19937_64 random(kSeed);
    for (const Lowered& lowered : plans_) {
      ASSERT_TRUE(verify(lowered.plan).ok())
          << lowered.name << ": " << render(verify(lowered.plan).error());
      const TensorMap inputs = inputs_of(lowered.plan);
      const std::optional<TensorMap> right = execute(lowered.plan, inputs);
      ASSERT_TRUE(right.has_value()) << lowered.name;
      for (const Mutant& edit : make_field_edits(lowered.plan, per_field, random)) {
        look_at(edit, inputs, *right, lowered.name);
      }
    }
  }

  void report() const {
    Count all;
    std::printf("%-34s %6s %8s %12s %6s  %s\n", "edit", "made", "refused", "unsupported", "equal",
                "by");
    for (const auto& [edit, count] : counts_) {
      std::string codes;
      for (const auto& [code, times] : count.codes) {
        codes += code + ":" + std::to_string(times) + " ";
      }
      std::printf("%-34s %6d %8d %12d %6d  %s\n", edit.c_str(), count.made, count.refused,
                  count.unsupported, count.equal, codes.c_str());
      all.made += count.made;
      all.refused += count.refused;
      all.unsupported += count.unsupported;
      all.equal += count.equal;
    }
    std::printf("%zu plans: %d edits, %d refused, %d refused by the executor, %d with equal bits\n",
                plans_.size(), all.made, all.refused, all.unsupported, all.equal);
  }

  [[nodiscard]] const std::map<std::string, Count>& counts() const { return counts_; }

 private:
  void look_at(const Mutant& edit, const TensorMap& inputs, const TensorMap& right,
               const std::string& name) {
    Count& count = counts_[edit.mutation];
    ++count.made;
    const auto result = verify(edit.plan);
    if (!result.ok()) {
      ++count.refused;
      ++count.codes[std::string(info(result.error().code).name)];
      return;
    }
    std::optional<TensorMap> got;
    const std::optional<std::string> broken =
        testing_support::internal_error_of([&] { got = execute(edit.plan, inputs); });
    EXPECT_FALSE(broken) << edit.mutation << " in " << name << ": " << *broken;
    if (broken) return;
    ++(got ? count.equal : count.unsupported);
    EXPECT_TRUE(!got || equal_bits(*got, right)) << edit.mutation << " in " << name << " survives";
    EXPECT_TRUE(kHarmless.contains(edit.mutation))
        << edit.mutation << " in " << name << " passes, and nothing says why it may";
  }

  std::vector<Lowered> plans_;
  std::map<std::string, Count> counts_;
};

TEST(FieldEdits, of_typed_plans_are_refused_or_change_no_bit) {
  Judge judge(lowered_typed());
  judge.judge(4 * kPerField);
  judge.report();
  EXPECT_EQ(judge.counts().at("task.wire").equal, 0);
  EXPECT_EQ(judge.counts().at("task.bytes").equal, 0);
  EXPECT_EQ(judge.counts().at("alloc.dtype-with-room-everywhere").equal, 0);
  EXPECT_GT(judge.counts().at("read.order").codes.at("V525"), 0);
}

TEST(FieldEdits, of_fenced_and_fused_plans_are_refused_or_change_no_bit) {
  Judge judge(lowered_further());
  judge.judge(kPerField);
  judge.report();
  EXPECT_GT(judge.counts().at("sync.fence").refused, 0);
}

TEST(FieldEdits, of_routed_plans_are_refused_or_change_no_bit) {
  Judge judge(lowered_experts(12));
  judge.judge(kPerField);
  judge.report();
  EXPECT_GT(judge.counts().at("read.alloc").refused, 0);
}

}  // namespace
}  // namespace harpe::test
