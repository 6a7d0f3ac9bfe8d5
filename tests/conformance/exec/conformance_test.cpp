#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>

#include "exec/cpu/cpu_executor.h"
#ifdef HARPE_WITH_CUDA
#include "tests/support/cuda_executor.h"
#endif
#include "ir/interpret.h"
#include "lower/lower.h"
#include "tests/conformance/exec/example_plans.h"
#include "verify/verify.h"

#include <gtest/gtest.h>

// Every executor computes what a verified plan states: the results of the program within rounding,
// with the same bits on every run. A new executor adds one line to `Executors`.
namespace harpe::test {
namespace {

using Made = Checked<std::unique_ptr<Executor>>;

struct CpuPool {
  static Made make(const Plan& plan) { return make_cpu_executor(plan, {}); }
};
struct CpuPoolDelayed {
  static Made make(const Plan& plan) {
    return make_cpu_executor(plan, {.workers = 4, .delay_seed = 17});
  }
};
struct CpuThreads {
  static Made make(const Plan& plan) {
    return make_cpu_executor(plan, {.runner = QueueRunner::Threads});
  }
};

#ifdef HARPE_WITH_CUDA
struct CudaShared {
  static Made make(const Plan& plan) { return make_test_executor(plan); }
  static std::optional<std::string> missing() { return missing_for_gpus(); }
};
using Executors = testing::Types<CpuPool, CpuPoolDelayed, CpuThreads, CudaShared>;
#else
using Executors = testing::Types<CpuPool, CpuPoolDelayed, CpuThreads>;
#endif

template <class Maker>
class Conformance : public testing::Test {
 protected:
  void SetUp() override {
    if constexpr (requires { Maker::missing(); }) {
      if (const auto missing = Maker::missing()) GTEST_SKIP() << "skipped: " << *missing;
    }
  }
};
TYPED_TEST_SUITE(Conformance, Executors);

using Sizes = std::map<std::string, std::int64_t>;

const std::vector<Sizes> kGemmSizes = {{{"M", 64}, {"N", 64}, {"K", 64}},
                                       {{"M", 50}, {"N", 37}, {"K", 43}},
                                       {{"M", 5}, {"N", 3}, {"K", 7}}};
const std::vector<Sizes> kAttentionSizes = {
    {{"B", 2}, {"Sq", 64}, {"Skv", 64}, {"Hkv", 8}, {"G", 2}, {"D", 16}},
    {{"B", 1}, {"Sq", 61}, {"Skv", 77}, {"Hkv", 9}, {"G", 1}, {"D", 8}},
    {{"B", 1}, {"Sq", 50}, {"Skv", 33}, {"Hkv", 8}, {"G", 3}, {"D", 5}}};

TensorMap draw_inputs(const Program& program) {
  TensorMap inputs;
  for (const Buffer* buffer : buffers_of(program)) {
    if (buffer->role != Role::In) continue;
    inputs[buffer->name] =
        random_tensor(buffer->dtype, shape_of(program, *buffer), 5, buffer->name);
  }
  return inputs;
}

// Four times the bound of commir.md 9: a contraction of length k summed in the state's type, one
// rounding per rank on the wire and one in the output's type. Attention scores are about as exact
// as the products of its operands.
double bound_of(const Program& program, const Buffer& output, std::int64_t ranks, double scale) {
  double k = 1;
  DType coarsest = DType::F64;
  for (const Axis* axis : axes_of(program)) k = std::max(k, static_cast<double>(size_of(*axis)));
  for (const Buffer* buffer : buffers_of(program)) {
    const bool coarser = unit_roundoff(buffer->dtype) > unit_roundoff(coarsest);
    if (coarser && buffer->dtype != DType::F32) coarsest = buffer->dtype;
  }
  if (coarsest == DType::F64) coarsest = state_dtype(buffers_of(program).front()->dtype);
  const double state = unit_roundoff(coarsest == DType::F64 ? DType::F64 : DType::F32);
  const double wire = unit_roundoff(coarsest);
  return 4 * scale *
         (std::sqrt(k) * state + std::sqrt(static_cast<double>(ranks)) * wire +
          unit_roundoff(output.dtype));
}

void expect_close(const HostTensor& found, const HostTensor& wanted, const Program& program,
                  const Buffer& buffer, std::int64_t ranks) {
  double scale = 1;
  double worst = 0;
  ASSERT_EQ(found.shape, wanted.shape);
  for (std::int64_t i = 0; i < element_count(wanted); ++i) {
    const double want = load(wanted, i);
    const double have = load(found, i);
    if (std::isfinite(want)) scale = std::max(scale, std::abs(want));
    if (have == want) continue;
    const double error = std::abs(have - want);
    worst = std::isfinite(error) ? std::max(worst, error) : INFINITY;
  }
  EXPECT_LE(worst, bound_of(program, buffer, ranks, scale)) << "in `" << buffer.name << "`";
}

void check_executor(Executor& executor, const Plan& plan, const Program& program) {
  const TensorMap inputs = draw_inputs(program);
  for (const auto& [name, tensor] : inputs) (void)executor.set_input(name, tensor).value();
  const Checked<Meaning> meaning = interpret(program, inputs, std::nullopt, 1);
  ASSERT_TRUE(meaning.ok()) << render(meaning.error());
  std::map<std::string, std::vector<std::byte>> first;
  for (const std::int64_t iterations : {1, 3}) {
    const Result<RunStats, FaultReport> stats = executor.run({.iterations = iterations});
    ASSERT_TRUE(stats.ok()) << render(stats.error());
    for (const Buffer* buffer : buffers_of(program)) {
      if (buffer->role != Role::Out) continue;
      const HostTensor found = executor.output(buffer->name).value();
      if (iterations > 1) {
        EXPECT_EQ(found.data, first[buffer->name]) << "executions differ";
      } else {
        first[buffer->name] = found.data;
        expect_close(found, meaning.value().outputs.at(buffer->name), program, *buffer,
                     plan.mesh.ranks());
      }
    }
  }
}

// False if the executor refuses the plan: the GPU back end leaves some kinds of work to CPU ranks.
template <class Maker>
bool check_plan(const Plan& plan, const Program& program) {
  const Checked<Certificate> certificate = verify(plan);
  EXPECT_TRUE(certificate.ok()) << render(certificate.error());
  if (!certificate.ok()) return true;
  Made made = Maker::make(plan);
  if (!made.ok()) {
    const DiagInfo& why = info(made.error().code);
    const bool may_refuse = why.name.starts_with('G') && why.verdict == Verdict::Unsupported &&
                            made.error().code != DiagCode::G005;
    EXPECT_TRUE(may_refuse) << render(made.error());
    std::printf("%s", render(made.error()).c_str());
    return false;
  }
  check_executor(**made, plan, program);
  return true;
}

template <class Maker>
void check_examples(const std::vector<std::string>& programs, const std::vector<Sizes>& sizes,
                    int least) {
  int checked = 0;
  int refused = 0;
  for (const Example& example : examples_for(programs)) {
    for (const Sizes& size : sizes) {
      for (const DType dtype : {DType::F64, DType::BF16, DType::F32, DType::F16}) {
        const Program program = resized(example.program, size, dtype);
        SCOPED_TRACE(example.form.name + " for " + program.name + " in " +
                     std::string(print(dtype)) + " with first size " +
                     std::to_string(size.begin()->second));
        const Checked<Plan> plan = lower(program, example.mesh, example.form);
        if (!plan.ok()) {
          if (refused == 0) std::printf("%s", render(plan.error()).c_str());
          ++refused;
          continue;
        }
        ++(check_plan<Maker>(plan.value(), program) ? checked : refused);
        if (testing::Test::HasFailure()) return;  // the first difference is the most useful
      }
    }
  }
  std::printf("%d plans conform, %d forms refused\n", checked, refused);
  EXPECT_GE(checked, least);
}

TYPED_TEST(Conformance, matrix_products_of_every_example) {
  check_examples<TypeParam>({"gemm"}, kGemmSizes, 100);
}

TYPED_TEST(Conformance, attention_of_every_example) {
  check_examples<TypeParam>({"attn"}, kAttentionSizes, 100);
}

TYPED_TEST(Conformance, causal_attention_of_every_example) {
  check_examples<TypeParam>({"attn_causal"}, kAttentionSizes, 100);
}

TYPED_TEST(Conformance, decoding_of_every_example) {
  check_examples<TypeParam>({"flash_decode"},
                            {{{"B", 2}, {"Skv", 96}, {"Hkv", 8}, {"G", 2}, {"D", 16}},
                             {{"B", 1}, {"Skv", 5}, {"Hkv", 9}, {"G", 1}, {"D", 4}}},
                            20);
}

}  // namespace
}  // namespace harpe::test
