#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <vector>

#include "exec/cuda/jit/kernel_library.h"
#include "exec/cuda/library/nccl.h"
#include "exec/cuda/target/collectives.h"
#include "transport/exchange.h"

namespace harpe::cuda {

// NCCL's communicators for the ranks of this process. Its kernels wait for their peers without a
// limit; whoever learns that a peer does not come ends them here.
class Communicators {
 public:
  // Ranks that meet have agreed to right before; NCCL looks for links meanwhile.
  static constexpr std::chrono::seconds kToConnect{60};

  Communicators() = default;
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;
  // Requires: graphs that hold their kernels are gone. What NCCL does not end soon, as on a GPU
  // that failed, is left behind.
  ~Communicators();

  // One for each team, in the same order in all processes, which all call this where there are
  // several: then `exchange` is theirs. `devices` are by rank, null for those of other processes.
  // Errors: N010, N017, G080; G082 ranks do not come within the limit.
  [[nodiscard]] Checked<Ok> connect(const library::Nccl& nccl, const std::vector<Team>& teams,
                                    const std::vector<const Device*>& devices,
                                    transport::Exchange* exchange,
                                    std::chrono::milliseconds limit = kToConnect);

  [[nodiscard]] bool empty() const { return ends_.empty(); }
  // Requires: the rank is of this process and in the team.
  [[nodiscard]] const library::NcclRank& end(std::size_t team, RankId rank) const;

  // Kernels under way, and all later ones, end without their peers. For any thread, while others
  // use the communicators, any number of times.
  void abort();

 private:
  struct End {
    std::size_t team = 0;
    RankId rank;
    std::shared_ptr<library::NcclRank> nccl;
  };

  std::vector<End> ends_;
  std::atomic<bool> is_aborted_ = false;
  std::vector<std::future<void>> aborts_;
};

}  // namespace harpe::cuda
