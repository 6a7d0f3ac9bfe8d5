#pragma once

#include <functional>
#include <string_view>

#include "exec/cuda/profile/crew.h"
#include "exec/cuda/profile/figures.h"

namespace harpe::cuda::profile {

struct MeasureRequest {
  CrewRequest crew;
  std::vector<std::string> library_folders;  // besides the usual places of NVIDIA's libraries
  bool quick = false;                        // few and small shapes: rough figures
  std::function<void(std::string_view stage)> progress = {};
};

// Measures all figures of the GPUs. Errors: those of Crew and of preparing launches.
[[nodiscard]] Checked<GpuFigures> measure_gpus(const MeasureRequest& request);

// Its parts. All but the first and last require at least two GPUs.
[[nodiscard]] Checked<StartFigures> measure_starts(Crew& crew);
[[nodiscard]] Checked<LinkFigures> measure_links(Crew& crew, bool quick);
[[nodiscard]] Checked<std::vector<TimedCollective>> measure_collectives(Crew& crew, bool quick);
[[nodiscard]] std::vector<std::int64_t> collective_sizes(bool quick);  // bytes of one rank
// `launch`: time of a small kernel, which is subtracted. Errors: those of opening NCCL; G080, G081.
[[nodiscard]] Checked<LibraryFigures> measure_libraries(const Crew& crew,
                                                        const MeasureRequest& request,
                                                        double launch);
[[nodiscard]] Checked<Interference> measure_interference(Crew& crew, bool quick);
// The numbers of ranks that layers are divided over, ascending: the number of GPUs; with one GPU 2,
// 4 and 8.
[[nodiscard]] std::vector<std::int64_t> cuts_of(const Crew& crew);
// `kernel`: time of a small kernel, which is subtracted from a leaf's time.
[[nodiscard]] Checked<std::vector<LeafFigure>> measure_leaves(Crew& crew, bool quick,
                                                              double kernel);

}  // namespace harpe::cuda::profile
