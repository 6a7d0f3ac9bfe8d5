#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "tests/gpu/signals/rank_work.h"

namespace harpe::cuda::signals_test {

// The run-time compiler, and a driver set up for many streams whose kernels wait for each other.
struct Tools {
  std::shared_ptr<const DriverApi> driver;
  Nvrtc compiler;
};
// Errors: what this machine lacks for GPU tests.
Checked<Tools> open_tools();

// All ranks in this process, in the order of the GPUs; they share GPUs if there are too few.
class Rig {
 public:
  static Checked<std::unique_ptr<Rig>> build(const Tools& tools, int ranks);

  Peers& peers() { return peers_; }
  // The work of each rank, captured by `capture`; `options` by rank.
  Checked<std::vector<RankWork>> works(Checked<Ok> (RankWork::*capture)(),
                                       const std::function<WorkOptions(int)>& options);
  // Replays every rank in a separate thread.
  static Checked<Ok> replay(std::vector<RankWork>& works, std::int64_t times);

 private:
  explicit Rig(Peers peers) : peers_(std::move(peers)) {}

  std::map<int, std::unique_ptr<KernelLibrary>> libraries_;  // by GPU
  Peers peers_;
};

// Tests that need a GPU; CTest counts the program as skipped without one.
class OnGpus : public testing::Test {
 protected:
  void SetUp() override;

  [[nodiscard]] const Tools& tools() const { return *tools_; }
  // Two, four, and the number of GPUs.
  [[nodiscard]] std::vector<int> rank_counts() const;

 private:
  std::unique_ptr<Tools> tools_;
};

}  // namespace harpe::cuda::signals_test
