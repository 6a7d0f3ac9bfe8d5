#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "exec/cuda/library/step.h"
#include "exec/cuda/library/team.h"
#include "exec/cuda/runtime/graph.h"
#include "exec/takes_turns.h"

namespace harpe::library {

// A part of a tensor in a rank's memory: rows of bytes, `pitch` bytes apart in the whole tensor.
struct Part {
  int rank = 0;
  cuda::DeviceAddress address = 0;
  std::int64_t offset = 0;  // of the first row in the whole tensor
  std::int64_t pitch = 0;
  std::int64_t bytes = 0;  // of a row
  std::int64_t rows = 1;
  std::int64_t own_pitch = 0;  // of the rows in the rank's memory; 0: contiguous
};

// A tensor of the operator and its parts. Each element of an output is in one part.
struct Placed {
  DType dtype = DType::BF16;
  std::vector<std::int64_t> shape;
  std::vector<Part> parts;
};

// One step of the arithmetic.
struct Arithmetic {
  std::vector<Step> ways;  // the fastest one is used
  std::size_t chosen = 0;  // index into `ways`

  [[nodiscard]] Checked<Ok> order(CUstream stream) const { return ways[chosen](stream); }
};

// The work of one rank.
struct Work {
  std::vector<cuda::DeviceMemory> memory;
  std::vector<std::unique_ptr<Arithmetic>> arithmetic;
  Step all_arithmetic;      // as an execution runs it; none: its parts one after the other
  std::vector<Step> steps;  // of one execution

  // Errors, here and below: G005.
  [[nodiscard]] Checked<cuda::DeviceAddress> reserve(const Member& member, std::int64_t bytes);
  // Filled with zeros. Requires: a multiple of 4 bytes.
  [[nodiscard]] Checked<cuda::DeviceAddress> reserve_zeros(const Member& member,
                                                           std::int64_t bytes);
  // A copy of the bytes.
  [[nodiscard]] Checked<cuda::DeviceAddress> keep(const Member& member,
                                                  std::span<const std::byte> bytes);
  // A part of the arithmetic that other code launches. Requires: there is a way.
  const Arithmetic& choose_from(std::vector<Step> ways);
  // The same, and adds its launch to `steps`.
  void add_arithmetic(std::vector<Step> ways);
};

struct BaselineParts {
  std::vector<std::unique_ptr<Work>> work;  // per rank
  std::map<std::string, Placed> tensors;
};

// Bulk communication by NCCL around libraries' kernels, as one graph per rank that is replayed like
// Harpe's graphs.
class Baseline final : public Executor, public TakesTurns {
 public:
  Baseline(std::shared_ptr<Team> team, BaselineParts parts)
      : team_(std::move(team)), parts_(std::move(parts)) {}

  [[nodiscard]] Checked<Ok> set_input(const std::string& buffer, const HostTensor& tensor) override;
  [[nodiscard]] Result<RunStats, FaultReport> run(const RunOptions& options) override {
    return run_in_turns({}, options);
  }
  [[nodiscard]] Result<RunStats, FaultReport> run_in_turns(std::span<Executor* const> others,
                                                           const RunOptions& options) override;
  [[nodiscard]] Result<double, FaultReport> time_in_graph(
      std::span<Executor* const> others, std::int64_t count,
      std::chrono::milliseconds wait_limit) override;
  [[nodiscard]] Checked<HostTensor> output(const std::string& buffer) const override;
  // Without the libraries' own allocations.
  [[nodiscard]] std::int64_t allocated_bytes() const override;

  // As LibraryExecutor::time_arithmetic. Requires: it has run.
  [[nodiscard]] Checked<double> time_arithmetic(std::int64_t executions);

 private:
  using Turns = std::vector<Baseline*>;  // this one first
  // All of them, ready to be replayed.
  [[nodiscard]] Checked<Turns> turns_with(std::span<Executor* const> others);
  [[nodiscard]] Checked<Ok> prepare();
  [[nodiscard]] Work& work(int rank) { return *parts_.work[static_cast<std::size_t>(rank)]; }

  std::shared_ptr<Team> team_;
  BaselineParts parts_;
  std::vector<cuda::Graph> graphs_;      // per rank, after the first run
  std::vector<cuda::Graph> arithmetic_;  // the same for the arithmetic alone
};

}  // namespace harpe::library
