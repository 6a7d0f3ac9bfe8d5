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

// NCCL's communicators for the ranks of this process. NCCL's kernels wait for their peers without a
// limit; a thread that detects a missing peer aborts them here.
class Communicators {
 public:
  // Ranks have met just before; the limit leaves NCCL time to find links.
  static constexpr std::chrono::seconds kToConnect{60};

  Communicators() = default;
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;
  // Requires: graphs that contain their kernels are destroyed. Communicators that NCCL does not end
  // within 5 s, as on a failed GPU, are leaked.
  ~Communicators();

  // Creates one communicator per team, in the same order in all processes. Collective over all
  // processes if there are several: then `exchange` connects them. `devices` are by rank, null for
  // ranks of other processes. Errors: N010, N017, G080; G082 ranks do not join within the limit.
  [[nodiscard]] Checked<Ok> connect(const library::Nccl& nccl, const std::vector<Team>& teams,
                                    const std::vector<const Device*>& devices,
                                    transport::Exchange* exchange,
                                    std::chrono::milliseconds limit = kToConnect);

  [[nodiscard]] bool empty() const { return ends_.empty(); }
  // Requires: the rank is of this process and in the team.
  [[nodiscard]] const library::NcclRank& end(std::size_t team, RankId rank) const;

  // Ends kernels in flight, and all later ones, without their peers. Callable from any thread,
  // while others use the communicators, any number of times.
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
