#include "bench/cuda/gemm_subject.h"

#include <algorithm>

#include "exec/cuda/kernels/gemm/device/few_rows_order.h"
#include "exec/cuda/kernels/gemm/few_rows.h"

namespace harpe::bench {
namespace {

class GemmSubject final : public Subject {
 public:
  GemmSubject(const GemmCase& what, const device::GemmConfig& config, const TrialOptions& options,
              const TrialPlaces& places, Draw& draw)
      : problem_(*places.gpu, *places.home, what, draw.bits(), places.stream) {
    cuda::GemmSpec spec = problem_.spec();
    if (options.arrivals > 0) {
      spec = problem_.arriving_spec(*places.signals, options.arrivals, options.all_arrive);
    } else if (options.copy_blocks > 0) {
      spec = problem_.fetching_spec(*places.signals, options.copy_blocks);
    }
    spec.wait = places.signals->context();
    // The same number for all runners, because counters depend on it.
    int stream_blocks = 1;
    if (config.few_rows && draw.coin()) {
      stream_blocks = static_cast<int>(draw.between(2, device::kMostStreamBlocks));
      while (!cuda::can_share_streams(spec, config, stream_blocks)) --stream_blocks;
    }
    if (options.counters) {
      problem_.count_into(*places.counters, spec);
      make_parts(spec, {.config = config, .stream_blocks = stream_blocks});
    }
    make_runners(std::move(spec), config, stream_blocks, *places.gpu, draw);
  }

  void reset(CUstream stream) override { problem_.reset(stream); }
  void launch(Draw& draw, CUstream stream) override { draw.one_of(runners_).launch(stream); }
  [[nodiscard]] const std::vector<Parcel>& parcels() const override { return problem_.parcels(); }
  [[nodiscard]] const std::vector<CountedPart>& parts() const override { return parts_; }
  [[nodiscard]] std::int64_t result_bytes() const override {
    return problem_.what().m * problem_.c().stride_bytes();
  }
  void check(Verdict* verdict, CUstream stream) override { problem_.check(verdict, stream); }
  void check_copy(Address copy, Verdict* verdict, CUstream stream) override {
    problem_.check_copy(copy, verdict, stream);
  }
  [[nodiscard]] std::int64_t columns() const override { return problem_.what().n; }

 private:
  // The parts are panels, as in `spec.panels`; the copy has the layout of C.
  void make_parts(const cuda::GemmSpec& spec, const cuda::GemmChoice& choice) {
    const GuardedRows& c = problem_.c();
    for (std::size_t i = 0; i < spec.panels.size(); ++i) {
      const PanelCut& panel = problem_.what().panels[i];
      const std::int64_t offset = panel.row_begin * c.stride_bytes();
      parts_.push_back({.growth = arrivals(spec.panels[i], spec.n, choice),
                        .read_out = {{.to = static_cast<Address>(offset),
                                      .to_stride = c.stride_bytes(),
                                      .from = c.row(panel.row_begin),
                                      .from_stride = c.stride_bytes(),
                                      .row_bytes = c.row_bytes(),
                                      .rows = panel.rows}}});
    }
  }

  // Each panel keeps its flags and its counter in any order.
  void make_runners(cuda::GemmSpec spec, const device::GemmConfig& config, int stream_blocks,
                    Gpu& gpu, Draw& draw) {
    const std::size_t orders = std::min<std::size_t>(spec.panels.size(), 3);
    const int blocks = blocks_at_once(gpu, config);
    for (std::size_t made = 0; made < orders; ++made) {
      // Cutting for fewer thread blocks moves the cuts of tiles.
      const int cut_for =
          draw.coin() ? blocks : static_cast<int>(draw.between(spec.copy_blocks + 4, blocks));
      cuda::GemmChoice choice = cuda::cut_gemm(spec, config, cut_for);
      if (config.few_rows) {
        choice.stream_blocks = stream_blocks;
        const int streams = std::max(1, cut_for / cluster_of(choice));
        choice.parts = std::min(streams, cuda::most_streams(spec, config, stream_blocks));
      } else if (choice.joined == 0 && draw.coin()) {
        cut_at_random(choice, spec, draw);
      }
      runners_.emplace_back(gpu, spec, choice);
      std::rotate(spec.panels.begin(), spec.panels.begin() + 1, spec.panels.end());
    }
  }

  // Cuts any last tiles into any number of parts, also where that takes longer.
  static void cut_at_random(cuda::GemmChoice& choice, const cuda::GemmSpec& spec, Draw& draw) {
    const int most = cuda::most_parts(spec);
    if (!choice.config.cuts || most < 2) return;
    choice.full_tiles = static_cast<int>(draw.below(cuda::cluster_tiles(spec, choice.config)));
    choice.parts = static_cast<int>(draw.between(2, most));
  }

  GemmProblem problem_;
  std::vector<CountedPart> parts_;
  std::vector<GemmRunner> runners_;
};

}  // namespace

std::unique_ptr<Subject> make_gemm_subject(const GemmCase& what, const device::GemmConfig& config,
                                           const TrialOptions& options, const TrialPlaces& places,
                                           Draw& draw) {
  return std::make_unique<GemmSubject>(what, config, options, places, draw);
}

}  // namespace harpe::bench
