#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "exec/actions/prepare.h"
#include "exec/cuda/executor/communicators.h"
#include "exec/cuda/executor/cuda_executor.h"
#include "exec/cuda/executor/homes.h"
#include "exec/cuda/executor/network.h"
#include "exec/cuda/executor/rank_program.h"
#include "exec/cuda/jit/nvrtc.h"
#include "exec/cuda/kernels/stream_sums.h"
#include "exec/cuda/library/leaves.h"
#include "exec/cuda/target/collectives.h"
#include "exec/cuda/target/narrow.h"
#include "exec/cuda/target/signal_pages.h"
#include "exec/cuda/target/task_specs.h"
#include "exec/processes/process_group.h"
#include "ir/blocks.h"

namespace harpe::cuda {

// Memory of a queue's tasks besides the plan's. Tasks of a queue run in order and share it.
struct QueueMemory {
  std::optional<DeviceMemory> scratch;
  std::shared_ptr<StreamSums> sums = std::make_shared<StreamSums>();
};

// The plan, its launch plan, its index algebra and its memory, at stable addresses.
struct Prepared {
  Plan plan;  // with the boxes of exchanges
  Blocks blocks;
  launch::LaunchPlan launches;
  SignalPages pages;  // of the launches' signals
  Peers peers;
  std::unique_ptr<Network> network;                       // if there are puts
  std::vector<std::shared_ptr<KernelLibrary>> libraries;  // per GPU
  RankLibraries of_rank;  // for ranks of other processes, this process's own
  std::vector<std::unique_ptr<library::Leaves>> leaves;  // by rank, likewise
  actions::Bases bases;
  Numbers numbers;
  actions::Occupancy occupancy;
  actions::Scratch no_scratch;
  std::map<QueueId, QueueMemory> queues;
  NarrowStates narrow;  // the launches' 16-bit partials
  CollectiveChoice collectives;
  Communicators communicators;      // of these
  std::vector<CollectiveUse> uses;  // of these
  // Other plans use the arenas between executions.
  bool takes_turns = false;

  // Allocates or maps the ranks' memory: `bytes` of arena and `signals` signals each.
  using OpenPeers = std::function<Checked<Peers>(std::int64_t bytes, std::int32_t signals)>;
  // Places the plan and its launches in memory. Requires: `launches` and `exchanges` are the
  // plan's. Errors: those of `open`.
  [[nodiscard]] static Checked<std::unique_ptr<Prepared>> make(const Plan& plan, Blocks blocks,
                                                               launch::LaunchPlan launches,
                                                               const launch::Exchanges& exchanges,
                                                               const OpenPeers& open);

  // Requires: layouts of the plan.
  [[nodiscard]] actions::Setting setting(launch::RefLayouts& layouts) const {
    return {.plan = plan,
            .blocks = blocks,
            .layouts = layouts,
            .bases = bases,
            .occupancy = occupancy,
            .scratch = no_scratch};
  }
  // Memory and addresses for binding a rank's launches. Requires: this and layouts of the plan
  // outlive the result; libraries.
  [[nodiscard]] SpecSource source(RankId rank, launch::RefLayouts& layouts) const;
};

// One kernel library per GPU, in the order of ranks. Memory of other processes is accessed from the
// GPU of this process's rank.
void add_libraries(Prepared& prepared, const Nvrtc& compiler, const CudaOptions& options);
// For the next rank.
void add_library(Prepared& prepared, KernelLibrary& kernels, const library::Search& search);

// Opens the network if the plan has puts; collective over all processes. Requires: libraries, and
// `prepared` outlives the network. Errors: those of Network::open.
[[nodiscard]] Checked<Ok> open_network(Prepared& prepared, transport::Exchange* exchange,
                                       const CudaOptions& options);

// Opens NCCL if it runs any of the plan's collectives; equal on all processes. If NCCL is missing,
// pulls run all collectives, unless NCCL was requested. Errors: G002, G003 if NCCL was requested;
// N010.
[[nodiscard]] Checked<std::optional<library::Nccl>> open_nccl(
    launch::Exchanges& exchanges, std::optional<processes::ProcessGroup>& group,
    const CudaOptions& options);

// Connects the ranks whose collectives NCCL runs. Requires: libraries. Errors: N010, N017, G080,
// G082.
[[nodiscard]] Checked<Ok> connect_collectives(Prepared& prepared,
                                              const std::optional<library::Nccl>& nccl,
                                              transport::Exchange* exchange);

// The launches of this process's ranks, bound to their memory. Requires: libraries, a network if
// there are puts, connected collectives, and `prepared` outlives them. Errors: those of bind and of
// preparing tasks and launches; G005.
[[nodiscard]] Checked<std::vector<RankProgram>> make_programs(Prepared& prepared,
                                                              const CudaOptions& options);

}  // namespace harpe::cuda
