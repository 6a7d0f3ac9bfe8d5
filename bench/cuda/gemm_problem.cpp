#include "bench/cuda/gemm_problem.h"

#include <algorithm>

#include "support/check.h"

namespace harpe::bench {
namespace {

using device::GemmLayout;

// A multiple of 16 bytes with padding, so rows do not touch.
std::int64_t spaced(std::int64_t columns) { return (columns + 7) / 8 * 8 + 8; }

std::int64_t stride_of(const GemmCase& what, std::int64_t columns) {
  return what.packed ? columns : spaced(columns);
}

std::int64_t c_stride(const GemmCase& what) {
  return !device::in_bulk(what.store) ? what.n + 3 : stride_of(what, what.n);
}

std::int64_t a_columns(const GemmCase& what) { return what.m_major ? what.m : what.k; }

std::int64_t a_rows(const GemmCase& what) { return what.m_major ? what.k : what.m; }

std::int64_t b_columns(const GemmCase& what) {
  return what.layout == GemmLayout::KMajor ? what.k : what.n;
}

std::int64_t b_rows(const GemmCase& what) {
  return what.layout == GemmLayout::KMajor ? what.n : what.k;
}

// The matrix unit adds 16 terms at once; cut tiles add at most this many parts.
constexpr double kParts = 16;

}  // namespace

GemmProblem::GemmProblem(Gpu& gpu, Gpu& home, GemmCase problem, std::uint64_t seed, CUstream stream)
    : gpu_(&gpu),
      home_(&home),
      home_stream_(home.new_stream()),
      case_(std::move(problem)),
      seed_(seed),
      a_(gpu, a_rows(case_), a_columns(case_), stride_of(case_, a_columns(case_)), case_.in),
      b_(gpu, b_rows(case_) * std::max<std::int64_t>(case_.groups, 1), b_columns(case_),
         stride_of(case_, b_columns(case_)), case_.in),
      c_(home, case_.m, case_.n, c_stride(case_), case_.out),
      row_(gpu, 1, case_.n, spaced(case_.n), case_.in) {
  a_.poison(stream);
  b_.poison(stream);
  row_.poison(stream);
  row_.fill(mix_bits(seed + 3), Distribution::Normal, stream);
  a_.fill(mix_bits(seed), Distribution::Normal, stream);
  b_.fill(mix_bits(seed + 1), Distribution::Normal, stream);
  if (device::adds(case_.store)) {
    start_ = gpu.memory(case_.m * case_.n * 4);
    fill_random(gpu,
                {.to = {.address = at<void>(start_->address()),
                        .rows = case_.m,
                        .columns = case_.n,
                        .stride = case_.n,
                        .element = Element::F32},
                 .seed = mix_bits(seed + 2),
                 .distribution = Distribution::Normal,
                 .shift = 0},
                stream);
  }
}

cuda::GemmSpec GemmProblem::spec() const {
  cuda::GemmSpec spec;
  spec.n = case_.n;
  spec.k = case_.k;
  spec.in = case_.in;
  spec.out = case_.out;
  spec.add = device::adds(case_.store);
  spec.layout = case_.layout;
  spec.m_major = case_.m_major;
  spec.b = b_.address();
  spec.b_stride = b_.stride();
  if (case_.groups > 0) spec.b_rows = b_.count();
  std::vector<cuda::GemmMapOperandSpec> operands;
  for (const device::GemmMap map : case_.maps) {
    const bool adds = map == device::GemmMap::AddRow;
    spec.maps.push_back({.leaf = adds ? Leaf::Add : Leaf::Gelu, .is_row = adds});
    operands.push_back({.address = adds ? row_.address() : 0, .stride = 0});
  }
  for (const PanelCut& panel : case_.panels) {
    cuda::GemmPanelSpec made;
    made.map_operands = operands;
    made.rows = panel.rows;
    made.c = c_.row(panel.row_begin);
    made.c_stride = c_.stride();
    made.b_first = panel.group * b_rows(case_);
    for (const KChunkCut& k_chunk : panel.k_chunks) {
      made.k_chunks.push_back({.a = case_.m_major ? a_.cell(k_chunk.k_begin, panel.row_begin)
                                                  : a_.cell(panel.row_begin, k_chunk.k_begin),
                               .stride = a_.stride(),
                               .k_begin = k_chunk.k_begin,
                               .k_count = k_chunk.k_count,
                               .ready = {}});
    }
    spec.panels.push_back(std::move(made));
  }
  return spec;
}

cuda::MappedMemory GemmProblem::host_copy(const GuardedRows& rows) const {
  const std::int64_t bytes = rows.count() * rows.stride_bytes();
  cuda::MappedMemory copy = gpu_->host_memory(bytes);
  gpu_->enter();
  CUstream const stream = gpu_->new_stream();
  gpu_->copy(copy.address(), rows.address(), bytes, stream);
  gpu_->synchronise(stream);
  return copy;
}

// The memory of each K chunk, with the copies from the host that fill it.
const std::vector<GuardedRows>& GemmProblem::landings() {
  if (!landings_.empty()) return landings_;
  source_ = host_copy(a_);
  for (const PanelCut& panel : case_.panels) {
    for (const KChunkCut& k_chunk : panel.k_chunks) {
      const bool turned = case_.m_major;
      const std::int64_t rows = turned ? k_chunk.k_count : panel.rows;
      const std::int64_t columns = turned ? panel.rows : k_chunk.k_count;
      const GuardedRows& landing =
          landings_.emplace_back(*gpu_, rows, columns, stride_of(case_, columns), case_.in);
      const std::int64_t from = (turned ? k_chunk.k_begin : panel.row_begin) * a_.stride() +
                                (turned ? panel.row_begin : k_chunk.k_begin);
      parcels_.push_back({.copies = {{.to = landing.address(),
                                      .to_stride = landing.stride_bytes(),
                                      .from = source_->address() + static_cast<Address>(from * 2),
                                      .from_stride = a_.stride_bytes(),
                                      .row_bytes = landing.row_bytes(),
                                      .rows = rows}},
                          .flag = static_cast<int>(parcels_.size())});
      if (source_of_b_) send_b(k_chunk);
    }
  }
  return landings_;
}

void GemmProblem::send_b(const KChunkCut& k_chunk) {
  const bool by_k = case_.layout == GemmLayout::NMajor;  // rows
  const std::int64_t row = by_k ? k_chunk.k_begin : 0;
  const std::int64_t column = by_k ? 0 : k_chunk.k_begin;
  const std::int64_t rows = by_k ? k_chunk.k_count : case_.n;
  const std::int64_t columns = by_k ? case_.n : k_chunk.k_count;
  const std::int64_t from = (row * b_.stride() + column) * 2;
  std::optional<GuardedRows>& own = landings_of_b_.emplace_back();
  if (parcels_.size() % 2 == 0) own.emplace(*gpu_, rows, columns, b_.stride(), case_.in);
  parcels_.back().copies.push_back({.to = own ? own->address() : b_.cell(row, column),
                                    .to_stride = b_.stride_bytes(),
                                    .from = source_of_b_->address() + static_cast<Address>(from),
                                    .from_stride = b_.stride_bytes(),
                                    .row_bytes = 2 * columns,
                                    .rows = rows});
}

cuda::GemmSpec GemmProblem::arriving_spec(const Signals& signals, std::uint32_t arrivals,
                                          bool all) {
  cuda::GemmSpec arriving = spec();
  arriving.b_is_fixed = !all;
  if (all) {
    source_of_b_ = host_copy(b_);
    gpu_->enter();
    CUstream const stream = gpu_->new_stream();
    take_reference(stream);  // before b_ is poisoned, where some of its K chunks never arrive
    gpu_->synchronise(stream);
  }
  const std::vector<GuardedRows>& places = landings();
  int flag = 0;
  for (cuda::GemmPanelSpec& panel : arriving.panels) {
    for (cuda::GemmKChunkSpec& k_chunk : panel.k_chunks) {
      const GuardedRows& place = places[static_cast<std::size_t>(flag)];
      k_chunk.a = place.address();
      k_chunk.stride = place.stride();
      k_chunk.ready = signals.wait(flag, arrivals);
      if (all) {
        const auto& own = landings_of_b_[static_cast<std::size_t>(flag)];
        k_chunk.b = own ? own->address() : 0;
      }
      ++flag;
    }
  }
  arriving.wait = signals.context();
  return arriving;
}

cuda::GemmSpec GemmProblem::fetching_spec(const Signals& signals, int copy_blocks) {
  cuda::GemmSpec fetching = spec();
  fetching.copy_blocks = copy_blocks;
  fetching.wait = signals.context();
  for (std::size_t i = 0; i < fetching.panels.size(); ++i) {
    const std::int64_t rows = case_.panels[i].rows;
    const GuardedRows& landing =
        landings_.emplace_back(*gpu_, rows, case_.k, a_.stride(), case_.in);
    const std::int64_t bytes = rows * a_.stride_bytes();
    const auto flag = static_cast<int>(i);
    cuda::GemmKChunkSpec& k_chunk = fetching.panels[i].k_chunks.front();
    fetching.copies.push_back({.from = at<const void>(k_chunk.a),
                               .to = at<void>(landing.address()),
                               .bytes = bytes,
                               .ready = {},
                               .done = at<std::uint32_t>(signals.address(flag))});
    k_chunk.a = landing.address();
    k_chunk.ready = signals.wait(flag, device::copy_arrivals(bytes));
  }
  return fetching;
}

void GemmProblem::count_into(const Signals& counters, cuda::GemmSpec& spec) const {
  for (std::size_t panel = 0; panel < spec.panels.size(); ++panel) {
    spec.panels[panel].done = counters.address(static_cast<int>(panel));
  }
}

void GemmProblem::reset(CUstream stream) const {
  if (home_ == gpu_) {
    c_.poison(stream);
  } else {
    gpu_->synchronise(stream);
    c_.poison(home_stream_);
    home_->synchronise(home_stream_);
  }
  for (const GuardedRows& landing : landings_) landing.poison(stream);
  if (source_of_b_) b_.poison(stream);
  for (const auto& landing : landings_of_b_) {
    if (landing) landing->poison(stream);
  }
  if (!start_) return;
  gpu_->copy_rows({.to = c_.address(),
                   .to_stride = c_.stride_bytes(),
                   .from = start_->address(),
                   .from_stride = case_.n * 4,
                   .row_bytes = case_.n * 4,
                   .rows = case_.m},
                  stream);
}

RowSample GemmProblem::sample() const {
  if (sampled_ == 0 || sampled_ >= case_.m) {
    return {.first = 0, .step = 1, .all = case_.m, .count = case_.m};
  }
  return {.first = static_cast<std::int64_t>(seed_ % static_cast<std::uint64_t>(case_.m)),
          .step = case_.m / sampled_,
          .all = case_.m,
          .count = sampled_};
}

GemmReferenceArgs GemmProblem::reference_args() const {
  return {.a = a_.rows(),
          .b = b_.rows(),
          .start = start_ ? at<const float>(start_->address()) : nullptr,
          .row = row_.rows(),
          .adds_row = std::ranges::count(case_.maps, device::GemmMap::AddRow) > 0,
          .takes_gelu = std::ranges::count(case_.maps, device::GemmMap::Gelu) > 0,
          .value = at<double>(value_->address()),
          .bound = at<double>(bound_->address()),
          .sample = sample(),
          .n = case_.n,
          .k = case_.k,
          .a_m_major = case_.m_major,
          .b_k_major = case_.layout == GemmLayout::KMajor,
          .out = case_.out,
          .roundings = static_cast<double>(case_.k / 16 + 2) + kParts};
}

void GemmProblem::take_reference(CUstream stream) {
  if (value_) return;
  const RowSample rows = sample();
  value_ = gpu_->memory(rows.count * case_.n * 8);
  bound_ = gpu_->memory(rows.count * case_.n * 8);
  if (case_.groups == 0) return gemm_reference(*gpu_, reference_args(), stream);
  HP_CHECK(rows.count == case_.m, "groups are not sampled");
  for (const PanelCut& panel : case_.panels) {
    GemmReferenceArgs args = reference_args();
    args.a.address = at<void>(a_.row(panel.row_begin));
    args.b.address = at<void>(b_.row(panel.group * b_rows(case_)));
    args.value += panel.row_begin * case_.n;
    args.bound += panel.row_begin * case_.n;
    args.sample = {.first = 0, .step = 1, .all = panel.rows, .count = panel.rows};
    gemm_reference(*gpu_, args, stream);
  }
}

void GemmProblem::check(Verdict* verdict, CUstream stream) {
  take_reference(stream);
  compare(*gpu_,
          {.out = c_.rows(),
           .sample = sample(),
           .value = at<const double>(value_->address()),
           .bound = at<const double>(bound_->address()),
           .verdict = verdict},
          stream);
  c_.check(*gpu_, verdict, stream);
}

void GemmProblem::check_copy(Address copy, Verdict* verdict, CUstream stream) {
  take_reference(stream);
  Rows rows = c_.rows();
  rows.address = at<void>(copy);
  compare(*gpu_,
          {.out = rows,
           .sample = sample(),
           .value = at<const double>(value_->address()),
           .bound = at<const double>(bound_->address()),
           .verdict = verdict},
          stream);
}

}  // namespace harpe::bench
