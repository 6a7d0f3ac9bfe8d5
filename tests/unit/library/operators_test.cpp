#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>

#include "tests/unit/library/questions.h"

namespace harpe {
namespace {

// Every operator in f32, small, under one of its schedules.
std::vector<Question> small_questions() {
  const Value f32 = std::string("f32");
  return {
      gemm_question(),
      {.op = "gemm",
       .parameters = {{"m", 24}, {"n", 16}, {"k", 32}, {"dtype", f32}},
       .mesh = "x=2,y=2",
       .schedule = "grid2d"},
      {.op = "ag_gemm",
       .parameters = {{"m", 24}, {"n", 16}, {"k", 32}, {"dtype", f32}},
       .mesh = "tp=4",
       .schedule = "push"},
      {.op = "gemm_ar",
       .parameters = {{"m", 24}, {"n", 16}, {"k", 30}, {"dtype", f32}},
       .mesh = "tp=3",
       .schedule = "fetch"},
      {.op = "attention",
       .parameters = {{"seq", 60}, {"heads", 4}, {"head_dim", 8}, {"causal", true}, {"dtype", f32}},
       .mesh = "cp=4",
       .schedule = "zigzag_ring"},
      {.op = "attention_bwd",
       .parameters = {{"seq", 64}, {"heads", 4}, {"head_dim", 8}, {"dtype", f32}},
       .mesh = "cp=4",
       .schedule = "ring"},
      {.op = "decode",
       .parameters = {{"batch", 4}, {"kv", 64}, {"heads", 4}, {"head_dim", 8}, {"dtype", f32}},
       .mesh = "cp=4",
       .schedule = "bulk"},
      {.op = "moe",
       .parameters = {{"tokens", 16},
                      {"hidden", 8},
                      {"experts", 8},
                      {"topk", 2},
                      {"inter", 12},
                      {"dtype", f32}},
       .mesh = "ep=4",
       .schedule = "bulk"},
  };
}

std::int64_t elements_in(const Rectangle& rectangle) {
  std::int64_t elements = 1;
  for (const Range& range : rectangle) elements *= range.end - range.begin;
  return elements;
}

// Counts every element of a rectangle.
void mark(const Buffer& buffer, const Rectangle& rectangle, std::vector<int>& counts,
          std::size_t dim = 0, std::int64_t flat = 0) {
  if (dim == rectangle.size()) {
    ++counts[static_cast<std::size_t>(flat)];
    return;
  }
  for (std::int64_t i = rectangle[dim].begin; i < rectangle[dim].end; ++i) {
    mark(buffer, rectangle, counts, dim + 1, flat * buffer.shape[dim] + i);
  }
}

// Homes hold every element, and no rank holds one twice.
void check_homes(const Plan& plan, const std::string& name) {
  for (const Buffer& buffer : plan.buffers()) {
    const auto size = std::accumulate(buffer.shape.begin(), buffer.shape.end(), std::int64_t{1},
                                      std::multiplies<>());
    std::vector<int> all(static_cast<std::size_t>(size));
    ASSERT_EQ(std::ssize(buffer.homes), plan.facts().ranks);
    for (const auto& home : buffer.homes) {
      std::vector<int> own(static_cast<std::size_t>(size));
      std::int64_t elements = 0;
      for (const Rectangle& rectangle : home) {
        ASSERT_EQ(rectangle.size(), buffer.shape.size());
        mark(buffer, rectangle, own);
        elements += elements_in(rectangle);
      }
      EXPECT_EQ(std::accumulate(own.begin(), own.end(), std::int64_t{0}), elements);
      for (std::size_t i = 0; i < own.size(); ++i) {
        EXPECT_LE(own[i], 1) << name << " " << buffer.name;
        all[i] += own[i];
      }
    }
    EXPECT_THAT(all, testing::Each(testing::Ge(1))) << name << " " << buffer.name;
  }
}

TEST(LibraryHomes, hold_every_element_under_every_schedule) {
  std::int64_t plans = 0;
  for (Question question : small_questions()) {
    for (const ScheduleInfo& schedule : schedules(question).value()) {
      if (schedule.refusal) continue;
      question.schedule = schedule.name;
      const Checked<Plan> made = plan(question);
      if (!made.ok()) continue;  // it cannot divide these sizes
      check_homes(*made, question.op + " " + schedule.name);
      ++plans;
    }
  }
  EXPECT_GT(plans, 40);
}

// The elements of an f32 `.npy` file.
std::string elements_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t header =
      10 + static_cast<unsigned char>(text.at(8)) + 256U * static_cast<unsigned char>(text.at(9));
  return text.substr(header);
}

std::string print_value(const Value& value) {
  if (const auto* const integer = std::get_if<std::int64_t>(&value))
    return std::to_string(*integer);
  if (const auto* const flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  return std::get<std::string>(value);
}

TEST(LibraryRunBits, are_those_of_the_command_line) {
  for (const Question& question : small_questions()) {
    const Plan made = plan(question).value();
    const auto inputs = draw_inputs(made, 5).value();
    std::map<std::string, ConstView> views;
    for (const auto& [name, tensor] : inputs) views.emplace(name, tensor.view());
    const RunResult result = run(made, views, {}, {.check = true}).value();

    std::string command = std::string(HARPE_BINARY) + " run " + question.op;
    for (const auto& [name, value] : question.parameters) {
      command += " " + name + "=" + print_value(value);
    }
    command += " --mesh " + question.mesh + " --schedule " + question.schedule;
    const auto path = [](const std::string& name) {
      return testing::TempDir() + "/harpe_library_" + name + ".npy";
    };
    for (const auto& [name, tensor] : result.outputs)
      command += " --output " + name + "=" + path(name);
    command += " --seed 5 --cache off > /dev/null 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    ASSERT_FALSE(result.outputs.empty());
    for (const auto& [name, tensor] : result.outputs) {
      const std::string wanted = elements_of(path(name));
      std::remove(path(name).c_str());
      ASSERT_EQ(tensor.data.size(), wanted.size()) << command;
      EXPECT_EQ(std::memcmp(tensor.data.data(), wanted.data(), wanted.size()), 0) << command;
    }
  }
}

}  // namespace
}  // namespace harpe
