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

// A part of a tensor in a rank's memory: rows of bytes, which are `pitch` apart in the whole.
struct Part {
  int rank = 0;
  cuda::DeviceAddress address = 0;
  std::int64_t offset = 0;  // of the first row in the whole
  std::int64_t pitch = 0;
  std::int64_t bytes = 0;  // of a row
  std::int64_t rows = 1;
  std::int64_t own_pitch = 0;  // of the rows in the rank's memory; 0: one behind the other
};

// A tensor of the operator, and where it lies. Of an output each element is in one part.
struct Placed {
  DType dtype = DType::BF16;
  std::vector<std::int64_t> shape;
  std::vector<Part> parts;
};

// A part of the arithmetic.
struct Arithmetic {
  std::vector<Step> ways;  // the fastest is taken
  std::size_t chosen = 0;  // of these

  [[nodiscard]] Checked<Ok> order(CUstream stream) const { return ways[chosen](stream); }
};

// What one rank does.
struct Work {
  std::vector<cuda::DeviceMemory> memory;
  std::vector<std::unique_ptr<Arithmetic>> arithmetic;
  Step all_arithmetic;      // as an execution does it; none: its parts one after the other
  std::vector<Step> steps;  // of one execution

  // Errors, here and below: G005.
  [[nodiscard]] Checked<cuda::DeviceAddress> reserve(const Member& member, std::int64_t bytes);
  // Full of zeros. Requires: whole words of 32 bits.
  [[nodiscard]] Checked<cuda::DeviceAddress> reserve_zeros(const Member& member,
                                                           std::int64_t bytes);
  // A copy of the bytes.
  [[nodiscard]] Checked<cuda::DeviceAddress> keep(const Member& member,
                                                  std::span<const std::byte> bytes);
  // A part of the arithmetic, which is ordered elsewhere. Requires: there is a way.
  const Arithmetic& choose_from(std::vector<Step> ways);
  // The same, and orders it here.
  void add_arithmetic(std::vector<Step> ways);
};

struct BaselineParts {
  std::vector<std::unique_ptr<Work>> work;  // per rank
  std::map<std::string, Placed> tensors;
};

// Bulk communication by NCCL around the libraries' kernels: a graph on every rank, replayed as ours
// are.
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
  // Without what the libraries allocate themselves.
  [[nodiscard]] std::int64_t allocated_bytes() const override;

  // As LibraryExecutor::time_arithmetic. Requires: it has run.
  [[nodiscard]] Checked<double> time_arithmetic(std::int64_t executions);

 private:
  using Turns = std::vector<Baseline*>;  // this one first
  // All of them ready to be replayed.
  [[nodiscard]] Checked<Turns> turns_with(std::span<Executor* const> others);
  [[nodiscard]] Checked<Ok> prepare();
  [[nodiscard]] Work& work(int rank) { return *parts_.work[static_cast<std::size_t>(rank)]; }

  std::shared_ptr<Team> team_;
  BaselineParts parts_;
  std::vector<cuda::Graph> graphs_;      // per rank, once it was run
  std::vector<cuda::Graph> arithmetic_;  // the same, of the arithmetic alone
};

}  // namespace harpe::library
