#include "harpe/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "tests/unit/library/questions.h"

namespace harpe {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Inputs = std::map<std::string, ConstView>;

Inputs views_of(const std::map<std::string, Tensor>& tensors) {
  Inputs views;
  for (const auto& [name, tensor] : tensors) views.emplace(name, tensor.view());
  return views;
}

std::vector<float> floats_of(const Tensor& tensor) {
  std::vector<float> out(tensor.data.size() / sizeof(float));
  std::memcpy(out.data(), tensor.data.data(), tensor.data.size());
  return out;
}

// c = a b in f64, of f32 inputs.
std::vector<double> multiply(const Tensor& a, const Tensor& b) {
  const auto rows = a.shape[0], depth = a.shape[1], columns = b.shape[1];
  const std::vector<float> left = floats_of(a), right = floats_of(b);
  std::vector<double> out(static_cast<std::size_t>(rows * columns));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      double sum = 0;
      for (std::int64_t i = 0; i < depth; ++i) {
        sum += double{left[static_cast<std::size_t>(row * depth + i)]} *
               right[static_cast<std::size_t>(i * columns + column)];
      }
      out[static_cast<std::size_t>(row * columns + column)] = sum;
    }
  }
  return out;
}

class LibraryRun : public testing::Test {
 protected:
  Plan plan_ = plan(gemm_question()).value();
  std::map<std::string, Tensor> inputs_ = draw_inputs(plan_, 7).value();

  [[nodiscard]] std::string refusal(const Inputs& inputs,
                                    const std::map<std::string, View>& outputs = {},
                                    const RunOptions& options = {}) const {
    const Checked<RunResult> result = run(plan_, inputs, outputs, options);
    return result.ok() ? "accepted" : result.error().text;
  }
};

TEST_F(LibraryRun, says_what_multiplied_and_takes_own_loops_alone) {
  const RunResult libraries = run(plan_, views_of(inputs_)).value();
  RunOptions options{.cpu_kernels = CpuKernels::Own};
  options.check = true;
  const RunResult own = run(plan_, views_of(inputs_), {}, options).value();
  ASSERT_EQ(libraries.products.size(), 1U);
  EXPECT_EQ(libraries.products[0].first, "f32");
  EXPECT_EQ(own.products, (std::vector<std::pair<std::string, std::string>>{{"f32", "own loops"}}));
  EXPECT_TRUE(libraries.products != own.products ||
              libraries.outputs.at("c").data == own.outputs.at("c").data);
}

TEST_F(LibraryRun, may_be_given_up_between_steps) {
  std::int64_t most = 0;
  RunOptions options{.iterations = 1'000'000};
  options.progress = [&](std::string_view stage, std::int64_t done, std::int64_t of) {
    EXPECT_EQ(stage, "running");
    EXPECT_LE(done, of);
    most = std::max(most, done);
    return done == 0;
  };
  EXPECT_THAT(refusal(views_of(inputs_), {}, options),
              StartsWith("error[I505]: the run was given"));
  EXPECT_GT(most, 0);
}

TEST_F(LibraryRun, may_be_given_up_within_a_check) {
  std::vector<std::string> stages;
  RunOptions options{.check = true};
  options.progress = [&](std::string_view stage, std::int64_t, std::int64_t) {
    if (stages.empty() || stages.back() != stage) stages.emplace_back(stage);
    return stage != "checking";
  };
  EXPECT_EQ(
      refusal(views_of(inputs_), {}, options),
      "error[I505]: the reference of `gemm_rs` was given up: the time for it is over; give it "
      "more time");
  EXPECT_EQ(stages.back(), "checking");
  options.progress = [](std::string_view, std::int64_t, std::int64_t) { return true; };
  EXPECT_EQ(refusal(views_of(inputs_), {}, options), "accepted");
}

TEST(LibraryDraw, may_be_given_up_within_what_follows_from_other_inputs) {
  const Plan backward =
      plan({.op = "attention_bwd", .parameters = {{"seq", 64}}, .mesh = "cp=2", .schedule = "ring"})
          .value();
  int left = 0;
  const Progress progress = [&](std::string_view stage, std::int64_t, std::int64_t) {
    EXPECT_EQ(stage, "drawing inputs");
    return left-- > 0;
  };
  EXPECT_THAT(draw_inputs(backward, 1, progress).error().text,
              StartsWith("error[I505]: drawing `"));
  left = 6;  // one for each drawn input, then the reference asks
  EXPECT_THAT(draw_inputs(backward, 1, progress).error().text,
              StartsWith("error[I505]: the reference of `"));
  left = 1 << 30;
  EXPECT_TRUE(draw_inputs(backward, 1, progress).ok());
}

TEST_F(LibraryRun, computes_the_operator) {
  const RunResult result = run(plan_, views_of(inputs_), {}, {.check = true}).value();
  const std::vector<float> got = floats_of(result.outputs.at("c"));
  const std::vector<double> wanted = multiply(inputs_.at("a"), inputs_.at("b"));
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5);
  ASSERT_EQ(result.checks.size(), 1U);
  EXPECT_LE(result.checks.front().error, result.checks.front().bound);
  EXPECT_EQ(result.checks.front().rows_checked, 24);
  EXPECT_EQ(result.times_us.size(), 1U);
  EXPECT_EQ(result.copied_bytes, (24 * 32 + 32 * 16) * 4);
}

TEST_F(LibraryRun, takes_views_as_they_are) {
  const Tensor wanted = run(plan_, views_of(inputs_))->outputs.at("c");
  // Passes b transposed, and c as every second row of an f64 array in reverse order.
  const std::vector<float> b = floats_of(inputs_.at("b"));
  std::vector<float> turned(b.size());
  for (std::size_t k = 0; k < 32; ++k) {
    for (std::size_t n = 0; n < 16; ++n) turned[n * 32 + k] = b[k * 16 + n];
  }
  Inputs inputs = views_of(inputs_);
  inputs["b"] = dense(std::as_const(turned).data(), DType::F32, {32, 16});
  inputs["b"].strides = {1, 32};
  std::vector<double> rows(48 * 16, -1);
  View c = dense(rows.data() + 46 * 16, DType::F64, {24, 16});
  c.strides = {-32, 1};
  const RunResult result = run(plan_, inputs, {{"c", c}}).value();
  EXPECT_TRUE(result.outputs.empty());
  const std::vector<float> expected = floats_of(wanted);
  for (std::size_t row = 0; row < 48; ++row) {
    for (std::size_t column = 0; column < 16; ++column) {
      const double value = rows[row * 16 + column];
      if (row % 2 == 1) {
        EXPECT_EQ(value, -1);
      } else {
        EXPECT_EQ(value, expected[(23 - row / 2) * 16 + column]);
      }
    }
  }
}

TEST_F(LibraryRun, refuses_what_is_no_argument) {
  Inputs inputs = views_of(inputs_);
  inputs.erase("b");
  EXPECT_EQ(refusal(inputs),
            "error[I310]: `gemm_rs` is given no tensor for input `b`, which is f32 of shape "
            "[32, 16]; pass one, or all of `draw_inputs`");
  inputs = views_of(inputs_);
  inputs["bb"] = inputs["b"];
  EXPECT_THAT(refusal(inputs), StartsWith("error[I301]: `bb` is not an input of `gemm_rs`"));
  inputs = views_of(inputs_);
  inputs["a"].shape[1] = 31;
  EXPECT_EQ(refusal(inputs),
            "error[I311]: `inputs[a]` must be f32, f64, f16 or bf16 of shape [24, 32], but is f32 "
            "of shape [24, 31]");
  inputs = views_of(inputs_);
  inputs["a"].axes = 9;
  EXPECT_THAT(refusal(inputs), HasSubstr("but is a view of 9 axes"));
  inputs = views_of(inputs_);
  inputs["a"].dtype = DType::I32;
  EXPECT_THAT(refusal(inputs), HasSubstr("but is i32 of shape [24, 32]"));
  inputs = views_of(inputs_);
  inputs["a"].data = nullptr;
  EXPECT_THAT(refusal(inputs), HasSubstr("but is null"));
  EXPECT_THAT(refusal(views_of(inputs_), {}, {.iterations = 0}),
              HasSubstr("`iterations` must be at least 1, but is 0"));
}

TEST_F(LibraryRun, refuses_outputs_that_overlap) {
  std::vector<float> memory(24 * 16);
  View c = dense(memory.data(), DType::F32, {24, 16});
  c.strides = {8, 1};
  EXPECT_EQ(refusal(views_of(inputs_), {{"c", c}}),
            "error[I311]: `outputs[c]` must be memory in which every element has a place of its "
            "own, but is strides [8, 1]");
  EXPECT_THAT(refusal(views_of(inputs_), {{"d", c}}), StartsWith("error[I305]"));
}

TEST_F(LibraryRun, has_ranks_of_its_own_in_every_thread) {
  const Tensor wanted = run(plan_, views_of(inputs_))->outputs.at("c");
  std::vector<std::vector<std::byte>> got(3);
  {
    std::vector<std::jthread> threads;
    for (auto& bytes : got) {
      threads.emplace_back([&] {
        bytes = run(plan_, views_of(inputs_), {}, {.iterations = 3})->outputs.at("c").data;
      });
    }
  }
  for (const auto& bytes : got) EXPECT_EQ(bytes, wanted.data);
}

TEST(LibraryRunBits, are_kept_in_types_of_16_bits) {
  const Plan made = plan(attention_question()).value();  // bf16
  const auto inputs = draw_inputs(made).value();
  EXPECT_EQ(inputs.at("q").dtype, DType::BF16);
  const RunResult result = run(made, views_of(inputs)).value();
  EXPECT_EQ(result.outputs.at("o").dtype, DType::BF16);
  EXPECT_EQ(result.outputs.at("lse").dtype, DType::F32);
}

TEST(LibraryRunInputs, are_refused_where_masks_cannot_read_them) {
  Question question = attention_question();
  question.parameters["packed"] = true;
  const Plan made = plan(question).value();
  auto inputs = draw_inputs(made).value();
  std::vector<std::int64_t> documents(64, std::int64_t{1} << 40);
  Inputs views = views_of(inputs);
  views["seg"] = dense(std::as_const(documents).data(), DType::I64, {1, 64});
  const auto result = run(made, views);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, "I304");
  EXPECT_THAT(result.error().message, StartsWith("`inputs[seg]` holds 1099511627776"));
}

}  // namespace
}  // namespace harpe
