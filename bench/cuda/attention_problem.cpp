#include "bench/cuda/attention_problem.h"

#include <cmath>

namespace harpe::bench {
namespace {

constexpr std::uint32_t kMinusInfinity = 0xff800000U;

// 16 bytes more than the columns, which are multiples of 64, so rows do not touch.
std::int64_t stride_of(const AttentionCase& what, std::int64_t columns) {
  return what.packed ? columns : columns + 8;
}

GuardedRows make_rows(Gpu& gpu, const AttentionCase& what, std::int64_t rows, std::int64_t columns,
                      Element element) {
  return {gpu, what.batch * rows, columns, stride_of(what, columns), element};
}

// `rows` in memory with `all` rows per batch entry.
cuda::HeadTensor tensor(const GuardedRows& rows, std::int64_t first, std::int64_t all,
                        std::int64_t head) {
  return {.address = rows.row(first),
          .strides = {.batch = all * rows.stride(), .row = rows.stride(), .head = head}};
}

}  // namespace

AttentionProblem::AttentionProblem(Gpu& gpu, Gpu& home, AttentionCase problem, std::uint64_t seed,
                                   CUstream stream)
    : gpu_(&gpu),
      home_(&home),
      home_stream_(home.new_stream()),
      case_(std::move(problem)),
      seed_(seed),
      q_(make_rows(gpu, case_, case_.rows, case_.heads * case_.query_dim, case_.in)),
      k_(make_rows(gpu, case_, case_.keys, case_.kv_heads * case_.query_dim, case_.in)),
      v_(make_rows(gpu, case_, case_.keys, case_.kv_heads * case_.value_dim, case_.in)),
      o_(make_rows(home, case_, case_.rows, case_.heads * case_.value_dim, case_.out)),
      lse_(home, case_.batch * case_.heads, case_.rows, case_.rows + (case_.packed ? 0 : 5),
           Element::F32) {
  for (const GuardedRows* rows : {&q_, &k_, &v_}) {
    rows->poison(stream);
    rows->fill(mix_bits(++seed), Distribution::Normal, stream);
  }
  if (case_.carried) make_state(mix_bits(seed + 1), stream);
}

// A state as if as many keys again had been seen; some rows saw none.
void AttentionProblem::make_state(std::uint64_t seed, CUstream stream) {
  const std::int64_t columns = case_.heads * case_.value_dim;
  start_o_.emplace(*gpu_, case_.batch * case_.rows, columns, columns, Element::F32);
  start_o_->fill(seed, Distribution::Normal, stream);
  start_lse_.emplace(*gpu_, case_.batch * case_.heads, case_.rows, case_.rows, Element::F32);
  fill_random(*gpu_,
              {.to = start_lse_->rows(),
               .seed = seed + 1,
               .distribution = Distribution::Uniform,
               .shift = static_cast<float>(std::log(static_cast<double>(case_.keys)))},
              stream);
  for (std::int64_t slice = 0; slice < start_lse_->count(); ++slice) {
    gpu_->fill_words(start_lse_->cell(slice, slice % case_.rows), kMinusInfinity, 1, stream);
  }
}

cuda::HeadTensor AttentionProblem::values(std::int64_t first) const {
  return case_.values_in_keys ? tensor(k_, first, case_.keys, case_.query_dim)
                              : tensor(v_, first, case_.keys, case_.value_dim);
}

cuda::AttentionSpec AttentionProblem::spec() const {
  cuda::AttentionSpec spec;
  spec.batch = case_.batch;
  spec.heads = case_.heads;
  spec.kv_heads = case_.kv_heads;
  spec.query_dim = case_.query_dim;
  spec.value_dim = case_.value_dim;
  spec.element = case_.in;
  spec.carried = case_.carried;
  spec.to_state = case_.out == Element::F32;
  spec.causal = case_.causal;
  spec.window = case_.window;
  for (const RowRange& panel : case_.panels) {
    cuda::AttentionPanelSpec made;
    made.rows = panel.rows;
    made.position = case_.first_position + panel.begin;
    made.queries = tensor(q_, panel.begin, case_.rows, case_.query_dim);
    made.output = tensor(o_, panel.begin, case_.rows, case_.value_dim);
    made.lse = {.address = lse_.cell(0, panel.begin),
                .strides = {.batch = case_.heads * lse_.stride(), .row = 1, .head = lse_.stride()}};
    if (start_o_) made.carried_output = tensor(*start_o_, panel.begin, case_.rows, case_.value_dim);
    spec.panels.push_back(made);
  }
  for (const RowRange& chunk : case_.chunks) {
    cuda::AttentionChunkSpec made;
    made.rows = chunk.rows;
    made.position = chunk.begin;
    made.keys = tensor(k_, chunk.begin, case_.keys, case_.query_dim);
    made.values = values(chunk.begin);
    spec.chunks.push_back(made);
  }
  return spec;
}

// A copy of all rows, in the memory of `on`; null: of the host.
Address AttentionProblem::copy_of(const GuardedRows& rows, const Gpu* on, CUstream stream) {
  const std::int64_t bytes = rows.count() * rows.stride_bytes();
  const Address to = on == nullptr ? host_sources_.emplace_back(gpu_->host_memory(bytes)).address()
                                   : peer_sources_.emplace_back(on->memory(bytes)).address();
  gpu_->enter();
  gpu_->copy(to, rows.address(), bytes, stream);
  gpu_->synchronise(stream);
  return to;
}

// Memory for `rows` of each batch entry, with the copies that fill it.
cuda::HeadTensor AttentionProblem::land(const GuardedRows& like, Address from, const RowRange& rows,
                                        std::int64_t head, std::vector<RowCopy>& copies) {
  const GuardedRows& place = landings_.emplace_back(*gpu_, case_.batch * rows.rows,
                                                    like.rows().columns, like.stride(), case_.in);
  const std::int64_t all = like.count() / case_.batch;
  for (std::int64_t batch = 0; batch < case_.batch; ++batch) {
    const std::int64_t offset = (batch * all + rows.begin) * like.stride_bytes();
    copies.push_back({.to = place.row(batch * rows.rows),
                      .to_stride = place.stride_bytes(),
                      .from = from + static_cast<Address>(offset),
                      .from_stride = like.stride_bytes(),
                      .row_bytes = like.row_bytes(),
                      .rows = rows.rows});
  }
  return tensor(place, 0, rows.rows, head);
}

cuda::AttentionSpec AttentionProblem::landing_spec(const Sources& from, const Bring& bring) {
  cuda::AttentionSpec landing = spec();
  int flag = 0;
  for (std::size_t i = 0; i < landing.chunks.size(); ++i) {
    std::vector<RowCopy> copies;
    cuda::AttentionChunkSpec& chunk = landing.chunks[i];
    chunk.keys = land(k_, from.k, case_.chunks[i], case_.query_dim, copies);
    chunk.values = land(v_, from.v, case_.chunks[i], case_.value_dim, copies);
    chunk.ready = bring(flag++, std::move(copies));
  }
  for (std::size_t i = 0; i < landing.panels.size(); ++i) {
    std::vector<RowCopy> copies;
    cuda::AttentionPanelSpec& panel = landing.panels[i];
    panel.queries = land(q_, from.q, case_.panels[i], case_.query_dim, copies);
    panel.ready = bring(flag++, std::move(copies));
  }
  return landing;
}

cuda::AttentionSpec AttentionProblem::arriving_spec(const Signals& signals, std::uint32_t arrivals,
                                                    const Gpu* source) {
  CUstream const stream = gpu_->new_stream();
  const Sources from = {.q = copy_of(q_, source, stream),
                        .k = copy_of(k_, source, stream),
                        .v = copy_of(v_, source, stream)};
  cuda::AttentionSpec arriving = landing_spec(from, [&](int flag, std::vector<RowCopy> copies) {
    parcels_.push_back({.copies = std::move(copies), .flag = flag});
    return signals.wait(flag, arrivals);
  });
  arriving.wait = signals.context();
  return arriving;
}

cuda::AttentionSpec AttentionProblem::fetching_spec(const Signals& signals, int copy_blocks) {
  const Sources from = {.q = q_.address(), .k = k_.address(), .v = v_.address()};
  std::vector<device::CopyJob> jobs;
  cuda::AttentionSpec fetching = landing_spec(from, [&](int flag, std::vector<RowCopy> copies) {
    std::uint32_t granules = 0;
    for (const RowCopy& rows : copies) {
      const std::int64_t bytes = rows.rows * rows.from_stride;
      jobs.push_back({.from = at<const void>(rows.from),
                      .to = at<void>(rows.to),
                      .bytes = bytes,
                      .ready = {},
                      .done = at<std::uint32_t>(signals.address(flag))});
      granules += device::copy_arrivals(bytes);
    }
    return signals.wait(flag, granules);
  });
  fetching.copies = std::move(jobs);
  fetching.copy_blocks = copy_blocks;
  fetching.wait = signals.context();
  return fetching;
}

void AttentionProblem::reset(CUstream stream) const {
  if (home_ != gpu_) gpu_->synchronise(stream);
  CUstream const there = home_ == gpu_ ? stream : home_stream_;
  o_.poison(there);
  lse_.poison(there);
  if (home_ != gpu_) home_->synchronise(there);
  for (const GuardedRows& landing : landings_) landing.poison(stream);
  if (!start_lse_) return;
  gpu_->copy_rows({.to = lse_.address(),
                   .to_stride = lse_.stride_bytes(),
                   .from = start_lse_->address(),
                   .from_stride = start_lse_->stride_bytes(),
                   .row_bytes = lse_.row_bytes(),
                   .rows = lse_.count()},
                  stream);
}

RowSample AttentionProblem::sample() const {
  const std::int64_t all = case_.rows;
  if (sampled_ == 0 || sampled_ >= all) return {.first = 0, .step = 1, .all = all, .count = all};
  return {.first = static_cast<std::int64_t>(seed_ % static_cast<std::uint64_t>(all)),
          .step = all / sampled_,
          .all = all,
          .count = sampled_};
}

AttentionReferenceArgs AttentionProblem::reference_args() const {
  const RowSample rows = sample();
  const std::int64_t slices = case_.batch * case_.heads;
  const std::int64_t cells = slices * rows.count * case_.value_dim;
  AttentionReferenceArgs args{};
  args.q = at<void>(q_.address());
  args.k = at<void>(k_.address());
  args.v = at<void>(values(0).address);
  if (start_o_) {
    args.start_o = at<float>(start_o_->address());
    args.start_lse = at<float>(start_lse_->address());
  }
  args.value = at<double>(reference_->address());
  args.bound = args.value + cells;
  args.lse = args.bound + cells;
  args.lse_bound = args.lse + slices * rows.count;
  args.sample = rows;
  args.keys = case_.keys;
  args.batch = static_cast<std::int32_t>(case_.batch);
  args.heads = static_cast<std::int32_t>(case_.heads);
  args.kv_heads = static_cast<std::int32_t>(case_.kv_heads);
  args.columns = static_cast<std::int32_t>(case_.query_dim);
  args.v_columns = static_cast<std::int32_t>(case_.value_dim);
  const auto set = [](std::int64_t* strides, const cuda::HeadTensor& from) {
    strides[0] = from.strides.batch;
    strides[1] = from.strides.row;
    strides[2] = from.strides.head;
  };
  set(args.q_strides, tensor(q_, 0, case_.rows, case_.query_dim));
  set(args.k_strides, tensor(k_, 0, case_.keys, case_.query_dim));
  set(args.v_strides, values(0));
  args.first_position = case_.first_position;
  args.window = case_.window;
  args.causal = case_.causal;
  args.scale = 1 / std::sqrt(static_cast<double>(case_.query_dim));
  args.in = case_.in;
  args.out = case_.out;
  return args;
}

void AttentionProblem::take_reference(CUstream stream) {
  if (reference_) return;
  const std::int64_t rows = case_.batch * case_.heads * sample().count;
  reference_ = gpu_->memory(rows * (case_.value_dim + 1) * 2 * 8);
  attention_reference(*gpu_, reference_args(), stream);
}

void AttentionProblem::compare_all(Address o, Address lse, Verdict* verdict, CUstream stream) {
  take_reference(stream);
  const AttentionReferenceArgs reference = reference_args();
  const RowSample rows = sample();
  const std::int64_t columns = case_.heads * case_.value_dim;
  for (std::int64_t batch = 0; batch < case_.batch; ++batch) {
    const std::int64_t skipped = batch * rows.count * columns;
    compare(*gpu_,
            {.out = {.address =
                         at<void>(o + static_cast<Address>(batch * case_.rows * o_.stride_bytes())),
                     .rows = case_.rows,
                     .columns = columns,
                     .stride = o_.stride(),
                     .element = case_.out},
             .sample = rows,
             .value = reference.value + skipped,
             .bound = reference.bound + skipped,
             .verdict = verdict},
            stream);
  }
  for (std::int64_t slice = 0; slice < lse_.count(); ++slice) {
    compare(*gpu_,
            {.out = {.address = at<void>(lse + static_cast<Address>(slice * lse_.stride_bytes())),
                     .rows = case_.rows,
                     .columns = 1,
                     .stride = 1,
                     .element = Element::F32},
             .sample = rows,
             .value = reference.lse + slice * rows.count,
             .bound = reference.lse_bound + slice * rows.count,
             .verdict = verdict},
            stream);
  }
}

void AttentionProblem::check(Verdict* verdict, CUstream stream) {
  compare_all(o_.address(), lse_.address(), verdict, stream);
  o_.check(*gpu_, verdict, stream);
  lse_.check(*gpu_, verdict, stream);
}

void AttentionProblem::check_copy(Address copy, Verdict* verdict, CUstream stream) {
  const auto o_bytes = static_cast<Address>(o_.count() * o_.stride_bytes());
  compare_all(copy, copy + o_bytes, verdict, stream);
}

}  // namespace harpe::bench
