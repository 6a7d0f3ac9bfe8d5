#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "exec/cuda/graph.h"
#include "exec/cuda/library/team.h"
#include "exec/executor.h"

namespace harpe::library {

// Orders something in a stream of the calling thread's GPU.
using Step = std::function<Checked<Ok>(CUstream stream)>;

// A part of a tensor in a rank's memory: rows of bytes, which are `pitch` apart in the whole.
struct Part {
  int rank = 0;
  cuda::DeviceAddress address = 0;
  std::int64_t offset = 0;  // of the first row in the whole
  std::int64_t pitch = 0;
  std::int64_t bytes = 0;  // of a row
  std::int64_t rows = 1;
};

// A tensor of the operator, and where it lies. Of an output each element is in one part.
struct Placed {
  DType dtype = DType::BF16;
  std::vector<std::int64_t> shape;
  std::vector<Part> parts;
};

// What one rank does.
struct Work {
  std::vector<cuda::DeviceMemory> memory;
  std::vector<Step> ways;    // to do the rank's arithmetic: the fastest is taken
  std::size_t chosen = 0;    // of these
  double arithmetic_us = 0;  // the fastest's time, alone
  std::vector<Step> steps;   // of one execution

  // Errors: G005.
  [[nodiscard]] Checked<cuda::DeviceAddress> reserve(const Member& member, std::int64_t bytes);
  // The arithmetic, as it was chosen.
  void add_arithmetic() {
    steps.emplace_back([this](CUstream stream) { return ways[chosen](stream); });
  }
};

struct BaselineParts {
  std::vector<std::unique_ptr<Work>> work;  // per rank
  std::map<std::string, Placed> tensors;
};

// Bulk communication by NCCL around the libraries' kernels: a graph on every rank, replayed as ours
// are.
class Baseline final : public Executor {
 public:
  Baseline(std::shared_ptr<Team> team, BaselineParts parts)
      : team_(std::move(team)), parts_(std::move(parts)) {}

  [[nodiscard]] Checked<Ok> set_input(const std::string& buffer, const HostTensor& tensor) override;
  [[nodiscard]] Result<RunStats, FaultReport> run(const RunOptions& options) override;
  [[nodiscard]] Checked<HostTensor> output(const std::string& buffer) const override;

  // After a run: the slowest rank's arithmetic alone, without any communication.
  [[nodiscard]] double arithmetic_us() const;

 private:
  [[nodiscard]] Checked<Ok> prepare();
  [[nodiscard]] Work& work(int rank) { return *parts_.work[static_cast<std::size_t>(rank)]; }

  std::shared_ptr<Team> team_;
  BaselineParts parts_;
  std::vector<cuda::Graph> graphs_;  // per rank, once it was run
};

}  // namespace harpe::library
