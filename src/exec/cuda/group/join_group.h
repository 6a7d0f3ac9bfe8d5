#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/group/group.h"
#include "plan/launch_plan.h"

namespace harpe::cuda {

struct DriverApi;

struct CudaGroupOptions {
  std::int64_t gpu = 0;  // of this rank; up to four ranks may share one
  std::optional<std::string> kernel_cache = std::nullopt;  // a folder; none: always compile
  std::optional<std::string> nvrtc = std::nullopt;         // the compiler's library
  std::vector<std::string> cuda_folders = {};              // otherwise, where to look for it
  std::vector<std::string> library_folders = {};           // where to look for cuBLASLt and cuDNN
  // Called before anything is launched; a refusal ends RankGroup::make.
  std::function<Checked<Ok>(const Plan&, const launch::LaunchPlan&)> prove =
      [](const Plan&, const launch::LaunchPlan&) { return Checked<Ok>(Ok{}); };
  // Tests: a driver that refuses calls; null: the machine's.
  std::shared_ptr<const DriverApi> driver = nullptr;
  // Tests: the task of every plan runs, but its signals reach no other rank.
  std::optional<TaskId> drop_signal_of = std::nullopt;
};

// Joins a group as one rank on a GPU of this process; the other ranks are threads of this process,
// or other processes of this host. They communicate over the exchange only.
//
// Memory that peers access, arenas and pages of signals, is freed by its last user on this rank: an
// execution ends on a rank only once no other rank's work in flight touches the rank's memory.
// After a fault without a reset this does not hold, so memory of executables that end then stays
// allocated until the process ends. Ranks pull every collective; NCCL runs none. Collective.
// Errors: G002, G003, G005 to G007 no driver, compiler or suitable GPU; G070 too many ranks share a
// GPU; G071 no peer access between GPUs; G073 memory; N010, N015, N017.
[[nodiscard]] Checked<std::unique_ptr<RankGroup>> join_group(const GroupRequest& request,
                                                             const CudaGroupOptions& options);

}  // namespace harpe::cuda
