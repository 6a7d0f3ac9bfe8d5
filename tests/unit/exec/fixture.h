#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "exec/cpu/cpu_executor.h"
#include "ir/mask_data.h"
#include "ir/tensor.h"
#include "tests/unit/exec/plans.h"

namespace harpe::test {

// An executor whose inputs are drawn from `seed`.
struct Subject {
  std::unique_ptr<Executor> executor;
  TensorMap inputs;
};

inline Subject prepare(const Plan& plan, const CpuOptions& options = {}, std::uint64_t seed = 1) {
  Checked<std::unique_ptr<Executor>> made = make_cpu_executor(plan, options);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : render(made.error()));
  Subject subject{.executor = std::move(made).value(), .inputs = {}};
  for (const Buffer* buffer : buffers_of(plan.program)) {
    if (buffer->role != Role::In) continue;
    const HostTensor tensor = draw_input(plan.program, *buffer, seed);
    (void)subject.executor->set_input(buffer->name, tensor).value();
    subject.inputs[buffer->name] = tensor;
  }
  return subject;
}

inline RunStats run(Subject& subject, const RunOptions& options = {}) {
  Result<RunStats, FaultReport> result = subject.executor->run(options);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : render(result.error()));
  return result.ok() ? result.value() : RunStats{};
}

// The bits of all outputs after a run of the plan.
inline std::vector<std::byte> bits_of(const Plan& plan, const CpuOptions& options,
                                      const RunOptions& how = {}) {
  Subject subject = prepare(plan, options);
  run(subject, how);
  std::vector<std::byte> bits;
  for (const Buffer* buffer : buffers_of(plan.program)) {
    if (buffer->role != Role::Out) continue;
    const HostTensor tensor = subject.executor->output(buffer->name).value();
    bits.insert(bits.end(), tensor.data.begin(), tensor.data.end());
  }
  return bits;
}

// The largest |found - wanted|; infinite if one is NaN or they differ at an infinity.
inline double distance(const HostTensor& found, const std::vector<double>& wanted) {
  EXPECT_EQ(element_count(found), static_cast<std::int64_t>(wanted.size()));
  double largest = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double value = load(found, static_cast<std::int64_t>(i));
    if (value == wanted[i]) continue;
    const double error = std::abs(value - wanted[i]);
    largest =
        std::isfinite(error) ? std::max(largest, error) : std::numeric_limits<double>::infinity();
  }
  return largest;
}

inline std::vector<double> product(const TensorMap& inputs) {
  const HostTensor& a = inputs.at("a");
  const HostTensor& b = inputs.at("b");
  const std::int64_t depth = a.shape[1];
  const std::int64_t columns = b.shape[1];
  std::vector<double> c;
  for (std::int64_t i = 0; i < a.shape[0]; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < depth; ++k) {
        sum += load(a, i * depth + k) * load(b, k * columns + j);
      }
      c.push_back(sum);
    }
  }
  return c;
}

struct AttentionResult {
  std::vector<double> o;
  std::vector<double> l;
};

// The textbook formula: q[B, Q, H G, D], k[B, K, H, D], v[B, K, H, Dv].
inline AttentionResult attention(const TensorMap& inputs, bool causal) {
  const HostTensor& q = inputs.at("q");
  const HostTensor& k = inputs.at("k");
  const HostTensor& v = inputs.at("v");
  const std::int64_t batch = q.shape[0], queries = q.shape[1], heads = q.shape[2], dim = q.shape[3];
  const std::int64_t keys = k.shape[1], kv_heads = k.shape[2], value_dim = v.shape[3];
  AttentionResult result{
      .o = std::vector<double>(static_cast<std::size_t>(batch * queries * heads * value_dim)),
      .l = std::vector<double>(static_cast<std::size_t>(batch * heads * queries))};
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::int64_t kv = h / (heads / kv_heads);
      for (std::int64_t i = 0; i < queries; ++i) {
        const std::int64_t seen = causal ? std::min(keys, i + keys - queries + 1) : keys;
        double sum = 0;
        std::vector<double> values(static_cast<std::size_t>(value_dim));
        for (std::int64_t j = 0; j < seen; ++j) {
          double score = 0;
          for (std::int64_t d = 0; d < dim; ++d) {
            score += load(q, ((b * queries + i) * heads + h) * dim + d) *
                     load(k, ((b * keys + j) * kv_heads + kv) * dim + d);
          }
          const double weight = std::exp(score / std::sqrt(static_cast<double>(dim)));
          sum += weight;
          for (std::int64_t d = 0; d < value_dim; ++d) {
            values[static_cast<std::size_t>(d)] +=
                weight * load(v, ((b * keys + j) * kv_heads + kv) * value_dim + d);
          }
        }
        result.l[static_cast<std::size_t>((b * heads + h) * queries + i)] = std::log(sum);
        for (std::int64_t d = 0; d < value_dim; ++d) {
          result.o[static_cast<std::size_t>(((b * queries + i) * heads + h) * value_dim + d)] =
              sum == 0 ? 0 : values[static_cast<std::size_t>(d)] / sum;
        }
      }
    }
  }
  return result;
}

}  // namespace harpe::test
