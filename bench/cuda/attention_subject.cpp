#include "bench/cuda/attention_subject.h"

#include <algorithm>

#include "bench/cuda/attention_problem.h"
#include "bench/cuda/must.h"
#include "exec/cuda/kernels/attention/prepared_attention.h"

namespace harpe::bench {
namespace {

class AttentionSubject final : public Subject {
 public:
  AttentionSubject(const AttentionCase& what, const device::AttentionConfig& config,
                   const TrialOptions& options, const TrialPlaces& places, Draw& draw)
      : gpu_(places.gpu), problem_(*places.gpu, *places.home, what, draw.bits(), places.stream) {
    cuda::AttentionSpec spec = problem_.spec();
    if (options.arrivals > 0) {
      spec = problem_.arriving_spec(*places.signals, options.arrivals, nullptr);
    } else if (options.copy_blocks > 0) {
      spec = problem_.fetching_spec(*places.signals, options.copy_blocks);
    }
    spec.wait = places.signals->context();
    if (options.counters) count(spec, config, *places.counters);
    const std::size_t orders = std::min<std::size_t>(spec.chunks.size(), 3);
    for (std::size_t made = 0; made < orders; ++made) {
      runs_.push_back(must(cuda::PreparedAttention::make(gpu_->library(), spec, config)));
      std::rotate(spec.chunks.begin(), spec.chunks.begin() + 1, spec.chunks.end());
    }
  }

  void reset(CUstream stream) override { problem_.reset(stream); }
  void launch(Draw& draw, CUstream stream) override { must(draw.one_of(runs_).launch(stream)); }
  [[nodiscard]] const std::vector<Parcel>& parcels() const override { return problem_.parcels(); }
  [[nodiscard]] const std::vector<CountedPart>& parts() const override { return parts_; }
  [[nodiscard]] std::int64_t result_bytes() const override {
    return bytes_of(problem_.o()) + bytes_of(problem_.lse());
  }
  void check(Verdict* verdict, CUstream stream) override { problem_.check(verdict, stream); }
  void check_copy(Address copy, Verdict* verdict, CUstream stream) override {
    problem_.check_copy(copy, verdict, stream);
  }
  [[nodiscard]] std::int64_t columns() const override {
    return problem_.what().heads * problem_.what().value_dim;
  }

 private:
  [[nodiscard]] static std::int64_t bytes_of(const GuardedRows& rows) {
    return rows.count() * rows.stride_bytes();
  }

  // A counter for each panel. Its results: o's rows in each batch entry, then a range of each row
  // of lse.
  void count(cuda::AttentionSpec& spec, const device::AttentionConfig& config,
             const Signals& counters) {
    const GuardedRows& o = problem_.o();
    const GuardedRows& lse = problem_.lse();
    for (std::size_t i = 0; i < spec.panels.size(); ++i) {
      spec.panels[i].done = counters.address(static_cast<int>(i));
      CountedPart part;
      part.growth = arrivals(spec, spec.panels[i], config);
      const RowRange& panel = problem_.what().panels[i];
      for (std::int64_t batch = 0; batch < problem_.what().batch; ++batch) {
        const std::int64_t row = batch * problem_.what().rows + panel.begin;
        part.read_out.push_back({.to = static_cast<Address>(row * o.stride_bytes()),
                                 .to_stride = o.stride_bytes(),
                                 .from = o.row(row),
                                 .from_stride = o.stride_bytes(),
                                 .row_bytes = o.row_bytes(),
                                 .rows = panel.rows});
      }
      part.read_out.push_back({.to = static_cast<Address>(bytes_of(o) + panel.begin * 4),
                               .to_stride = lse.stride_bytes(),
                               .from = lse.cell(0, panel.begin),
                               .from_stride = lse.stride_bytes(),
                               .row_bytes = panel.rows * 4,
                               .rows = lse.count()});
      parts_.push_back(std::move(part));
    }
  }

  Gpu* gpu_;
  AttentionProblem problem_;
  std::vector<CountedPart> parts_;
  std::vector<cuda::PreparedAttention> runs_;
};

}  // namespace

std::unique_ptr<Subject> make_attention_subject(const AttentionCase& what,
                                                const device::AttentionConfig& config,
                                                const TrialOptions& options,
                                                const TrialPlaces& places, Draw& draw) {
  return std::make_unique<AttentionSubject>(what, config, options, places, draw);
}

}  // namespace harpe::bench
