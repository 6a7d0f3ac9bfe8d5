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
  std::optional<std::string> kernel_cache = std::nullopt;  // a folder; none: compile anew
  std::optional<std::string> nvrtc = std::nullopt;         // the compiler's library
  std::vector<std::string> cuda_folders = {};              // else where to look for it
  std::vector<std::string> library_folders = {};           // where to look for cuBLASLt and cuDNN
  // Asked before anything is launched; a refusal ends RankGroup::make.
  std::function<Checked<Ok>(const Plan&, const launch::LaunchPlan&)> prove =
      [](const Plan&, const launch::LaunchPlan&) { return Checked<Ok>(Ok{}); };
  // Tests: a driver that refuses calls; none: the machine's.
  std::shared_ptr<const DriverApi> driver = nullptr;
  // Tests: the task of every plan runs, but its signals reach no other rank.
  std::optional<TaskId> drop_signal_of = std::nullopt;
};

// One rank on a GPU of this process; the others are threads of it, or other processes of this
// host. They meet over the exchange alone.
//
// Memory that peers reach, which are the arena and the pages of signals, is freed by the last on
// this rank that uses it: an execution ends on a rank once nothing of others is under way that
// touches the rank's memory. After a fault that was not reset this is not known, and memory of
// executables that end then stays taken until the process ends.
// Ranks pull every collective: NCCL does none. Collective. Errors: G002, G003, G005 to G007 no
// driver, compiler or fit GPU; G070 more ranks than may share a GPU; G071 GPUs that are no peers;
// G073 memory; N010, N015, N017.
[[nodiscard]] Checked<std::unique_ptr<RankGroup>> join_group(const GroupRequest& request,
                                                             const CudaGroupOptions& options);

}  // namespace harpe::cuda
