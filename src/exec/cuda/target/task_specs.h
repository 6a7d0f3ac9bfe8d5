#pragma once

#include <functional>
#include <vector>

#include "exec/actions/prepare.h"
#include "exec/cuda/kernels/plan_launches.h"
#include "exec/cuda/target/collectives.h"
#include "exec/cuda/target/narrow.h"

namespace harpe::cuda {

// A task's own launches.
struct TaskSpecs {
  std::vector<actions::Action> actions;
  LaunchSpecs launches;
  std::int64_t scratch = 0;  // bytes that these use besides the plan's memory
};

// The place of Occupancy's numbers in a rank's arena: behind the data.
struct Numbers {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
};
[[nodiscard]] Numbers numbers_of(const Plan& plan, const Blocks& blocks);

// What preparing launches needs of a plan and of memory, which need not exist: a plan is prepared
// for a GPU's memory to run it, and for arenas at made-up addresses to describe it.
struct SpecSource {
  const Plan& plan;
  const Blocks& blocks;
  launch::RefLayouts& layouts;  // of the plan
  const actions::Bases& bases;
  const actions::Occupancy& occupancy;
  Numbers numbers;
  const NarrowStates& narrow;
  const CollectiveChoice& collectives;
  int multiprocessors = 132;
  // The address of a put's image, on its own rank and on the receiver.
  std::function<std::byte*(TaskId put)> staging;
  std::function<std::byte*(TaskId put)> landing;
  std::function<const library::NcclRank*(std::size_t team, RankId rank)> communicator;

  [[nodiscard]] actions::Setting setting(const actions::Scratch& scratch) const {
    return {.plan = plan,
            .blocks = blocks,
            .layouts = layouts,
            .bases = bases,
            .occupancy = occupancy,
            .scratch = scratch};
  }
};

// The address of scratch memory before it is allocated: above all GPU addresses.
inline std::byte* const kNowhere = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 60);

// A task's launches on its rank's GPU, with scratch memory from `scratch` on; for a put, its
// packing. Errors: those of preparing tasks, and of plan_launches.
[[nodiscard]] Checked<TaskSpecs> specs_of(const SpecSource& source, TaskId task,
                                          std::byte* scratch);
// The same for a step of a sum whose parts NCCL moves, on `rank`.
[[nodiscard]] Checked<TaskSpecs> specs_of(const SpecSource& source, const Task& step, RankId rank,
                                          std::byte* scratch);
// A put's launches on its receiver. Errors: as above.
[[nodiscard]] Checked<TaskSpecs> landing_specs_of(const SpecSource& source, TaskId put);

}  // namespace harpe::cuda
