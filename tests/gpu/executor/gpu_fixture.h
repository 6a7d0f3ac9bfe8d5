#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "ir/interpret.h"
#include "ir/tensor.h"
#include "tests/support/cuda_executor.h"
#include "tests/unit/exec/plans.h"

namespace harpe::test {

// Tests that need a GPU; CTest counts the program as skipped without one.
class OnGpus : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto missing = missing_for_gpus()) GTEST_SKIP() << "skipped: " << *missing;
  }
};

inline TensorMap inputs_of(const Program& program) {
  TensorMap inputs;
  for (const Buffer* buffer : buffers_of(program)) {
    if (buffer->role != Role::In) continue;
    inputs[buffer->name] =
        random_tensor(buffer->dtype, shape_of(program, *buffer), 5, buffer->name);
  }
  return inputs;
}

// An executor whose inputs are set.
inline Checked<std::unique_ptr<Executor>> make_ready(const Plan& plan, CudaOptions options = {}) {
  HP_TRY(std::unique_ptr<Executor> executor, make_test_executor(plan, std::move(options)));
  for (const auto& [name, tensor] : inputs_of(plan.program)) {
    HP_REQUIRE_OK(executor->set_input(name, tensor));
  }
  return executor;
}

inline std::vector<std::string> outputs_of(const Program& program) {
  std::vector<std::string> names;
  for (const Buffer* buffer : buffers_of(program)) {
    if (buffer->role == Role::Out) names.push_back(buffer->name);
  }
  return names;
}

// Expects every output to be within `bound` of the reference, after a run.
inline void expect_right(const Executor& executor, const Plan& plan, double bound) {
  const auto meaning = interpret(plan.program, inputs_of(plan.program), std::nullopt, 1);
  ASSERT_TRUE(meaning.ok()) << render(meaning.error());
  for (const std::string& name : outputs_of(plan.program)) {
    const auto found = executor.output(name);
    ASSERT_TRUE(found.ok()) << render(found.error());
    const HostTensor& wanted = meaning->outputs.at(name);
    ASSERT_EQ(found->shape, wanted.shape);
    for (std::int64_t at = 0; at < element_count(wanted); ++at) {
      ASSERT_NEAR(load(*found, at), load(wanted, at), bound) << "`" << name << "` at " << at;
    }
  }
}

}  // namespace harpe::test
