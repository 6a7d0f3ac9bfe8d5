#pragma once

#include <functional>
#include <string_view>

#include "exec/cuda/profile/crew.h"
#include "exec/cuda/profile/figures.h"

namespace harpe::cuda::profile {

struct MeasureRequest {
  CrewRequest crew;
  std::vector<std::string> library_folders;  // beside where NVIDIA's libraries usually are
  bool quick = false;                        // few and small shapes: figures are rough
  std::function<void(std::string_view stage)> progress = {};
};

// Everything there is to measure of the GPUs. Errors: Crew's; those of preparing launches.
[[nodiscard]] Checked<GpuFigures> measure_gpus(const MeasureRequest& request);

// The parts of it, each by itself. All but the first and last require two GPUs or more.
[[nodiscard]] Checked<StartFigures> measure_starts(Crew& crew);
[[nodiscard]] Checked<LinkFigures> measure_links(Crew& crew, bool quick);
[[nodiscard]] Checked<std::vector<TimedCollective>> measure_collectives(Crew& crew, bool quick);
[[nodiscard]] std::vector<std::int64_t> collective_sizes(bool quick);  // bytes of one rank
// `launch`: what a small kernel takes, which is no part of theirs. Errors: those of
// opening NCCL; G080, G081.
[[nodiscard]] Checked<LibraryFigures> measure_libraries(const Crew& crew,
                                                        const MeasureRequest& request,
                                                        double launch);
[[nodiscard]] Checked<Interference> measure_interference(Crew& crew, bool quick);
// Over how many ranks the layers are cut whose parts are measured, ascending: as many as there are
// GPUs; one GPU is measured for 2, 4 and 8.
[[nodiscard]] std::vector<std::int64_t> cuts_of(const Crew& crew);
// `kernel`: what a small kernel takes, which is no part of a leaf's time.
[[nodiscard]] Checked<std::vector<LeafFigure>> measure_leaves(Crew& crew, bool quick,
                                                              double kernel);

}  // namespace harpe::cuda::profile
