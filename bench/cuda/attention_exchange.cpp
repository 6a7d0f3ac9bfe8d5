// Attention of one query per sequence in which all ranks exchange and combine their states. Several
// ranks share one GPU, each with its share of the SMs, so that all of them run at once.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "bench/cuda/attention_experiments.h"
#include "bench/cuda/attention_problem.h"
#include "bench/cuda/attention_shapes.h"
#include "bench/cuda/must.h"
#include "bench/cuda/ranks_beside.h"
#include "exec/cuda/kernels/attention/decode.h"
#include "exec/cuda/kernels/attention/prepared_decode.h"
#include "ir/rounding.h"

namespace harpe::bench {
namespace {

constexpr const char* kExchange = "exchange";
constexpr int kBackToBack = 40;  // executions

// All ranks' parts of one attention. Each rank has its keys, memory and a flag for what each other
// rank sends of its heads, and the result of its heads.
class AttentionOfRanks {
 public:
  AttentionOfRanks(Bench& bench, const AttentionCase& what, int ranks, std::uint64_t seed)
      : bench_(&bench),
        what_(what),
        ranks_(ranks),
        heads_(what.heads / ranks),
        beside_(bench.gpu(), ranks) {
    Gpu& gpu = bench.gpu();
    for (int rank = 0; rank < ranks; ++rank) {
      problems_.push_back(
          std::make_unique<AttentionProblem>(gpu, gpu, what, seed + 10U * rank, bench.stream()));
      inboxes_.push_back(gpu.memory(ranks * state_bytes()));
      results_.push_back(gpu.memory(state_bytes()));
    }
    gpu.synchronise(bench.stream());
  }

  // Prepares kernels of all ranks, with `blocks` SMs each.
  void prepare(int blocks) {
    for (int rank = 0; rank < ranks_; ++rank) {
      cuda::KernelLibrary& library = bench_->gpu().library();
      cuda::AttentionSpec spec = of(problems_, rank)->spec();
      spec.shares = cuda::choose_shares(spec, blocks);
      plain_.push_back(must(cuda::PreparedDecode::make(library, spec)));
      exchanging_.push_back(must(cuda::PreparedDecode::make(library, exchanging(rank, spec))));
    }
  }

  // One execution of all ranks in the given order, after the stream's earlier work and before its
  // later work.
  void run_plain(const std::vector<int>& order, CUstream stream) { run(plain_, order, stream); }
  // Requires: begin_epoch.
  void run_exchanging(const std::vector<int>& order, CUstream stream) {
    run(exchanging_, order, stream);
  }
  void begin_epoch(CUstream stream) { beside_.begin_epoch(stream); }

  // Only the first rank; the other ranks' states must have been brought.
  void launch_plain(CUstream stream) const { must(plain_.front().launch(stream)); }
  void launch_exchanging(CUstream stream) const { must(exchanging_.front().launch(stream)); }
  void bring_all(CUstream stream) { beside_.bring_all(stream); }

  // "" if each rank's states are right and each result is the combination of all ranks' states.
  [[nodiscard]] std::string find_fault(Draw& draw) {
    CUstream const stream = bench_->stream();
    VerdictBox verdict(bench_->gpu());
    verdict.clear(stream);
    for (const auto& problem : problems_) problem->reset(stream);
    run_plain(draw.order(static_cast<std::size_t>(ranks_)), stream);
    for (const auto& problem : problems_) problem->check(verdict.device(), stream);
    std::string wrong = describe(verdict.read(stream), what_.heads * what_.value_dim);
    if (!wrong.empty()) return wrong;
    for (int execution = 0; execution < kBackToBack; ++execution) {
      if (execution % 8 == 0) poison(stream);
      begin_epoch(stream);
      run_exchanging(draw.order(static_cast<std::size_t>(ranks_)), stream);
    }
    for (int rank = 0; rank < ranks_; ++rank) {
      if (std::string fault = beside_.signals(rank).fault(); !fault.empty()) return fault;
      if (wrong = compare(rank); !wrong.empty()) return wrong;
    }
    return "";
  }

 private:
  // A dense state of one rank's heads: outputs in f32, then logarithms.
  [[nodiscard]] std::int64_t rows() const { return what_.batch * heads_; }
  [[nodiscard]] std::int64_t state_bytes() const { return rows() * (what_.value_dim + 1) * 4; }
  [[nodiscard]] cuda::HeadTensor outputs(Address state) const {
    return {.address = state,
            .strides = {.batch = heads_ * what_.value_dim, .row = 0, .head = what_.value_dim}};
  }
  [[nodiscard]] cuda::HeadTensor logarithms(Address state) const {
    return {.address = state + static_cast<Address>(rows() * what_.value_dim * 4),
            .strides = {.batch = heads_, .row = 0, .head = 1}};
  }
  // Where `rank` receives what `from` sends.
  [[nodiscard]] Address inbox(int rank, int from) const {
    return of(inboxes_, rank).address() + static_cast<Address>(from * state_bytes());
  }

  // Sends the heads of each other rank to its inbox, and stores at home the combination with what
  // arrived.
  [[nodiscard]] cuda::AttentionSpec exchanging(int rank, cuda::AttentionSpec spec) const {
    spec.to_state = false;
    spec.wait = beside_.signals(rank).context();
    for (int peer = 0; peer < ranks_; ++peer) {
      const Address to = peer == rank ? of(results_, rank).address() : inbox(peer, rank);
      cuda::AttentionResultSpec& result = spec.results.emplace_back(cuda::AttentionResultSpec{
          .first_head = peer * heads_, .output = outputs(to), .lse = logarithms(to)});
      if (peer != rank) {
        result.fused_store = static_cast<int>(spec.fused_stores.size());
        spec.fused_stores.push_back({.word = at<std::uint32_t>(beside_.signals(peer).address(rank)),
                                     .peer_poison = beside_.signals(peer).context().poison,
                                     .added = 0});
        continue;
      }
      for (int from = 0; from < ranks_; ++from) {
        if (from == rank) continue;
        result.addends.push_back({.output = outputs(inbox(rank, from)),
                                  .lse = logarithms(inbox(rank, from)),
                                  .ready = beside_.signals(rank).wait(from, 1)});
      }
    }
    return spec;
  }

  void run(const std::deque<cuda::PreparedDecode>& kernels, const std::vector<int>& order,
           CUstream stream) {
    beside_.run(order, stream,
                [&](int rank, CUstream own) { must(of(kernels, rank).launch(own)); });
  }

  void poison(CUstream stream) const {
    for (int rank = 0; rank < ranks_; ++rank) {
      bench_->gpu().fill_bytes(inbox(rank, 0), 0xff, ranks_ * state_bytes(), stream);
      bench_->gpu().fill_bytes(of(results_, rank).address(), 0xff, state_bytes(), stream);
    }
  }

  // Reads `count` values from address `from`.
  template <class Value>
  [[nodiscard]] std::vector<Value> read(Address from, std::int64_t count) const {
    Gpu& gpu = bench_->gpu();
    const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(Value));
    const cuda::MappedMemory copy = gpu.host_memory(bytes);
    gpu.copy_rows({.to = copy.address(),
                   .to_stride = bytes,
                   .from = from,
                   .from_stride = bytes,
                   .row_bytes = bytes,
                   .rows = 1},
                  bench_->stream());
    gpu.synchronise(bench_->stream());
    const auto* const values = at<const Value>(copy.address());
    return {values, values + count};
  }

  // Compares with the states that the ranks' kernels compute alone.
  [[nodiscard]] std::string compare(int rank) const {
    constexpr double kBound = 1.0 / 64;
    const std::int64_t columns = what_.value_dim;
    std::vector<std::vector<float>> outputs_alone;
    std::vector<std::vector<float>> logarithms_alone;
    for (const auto& problem : problems_) {
      const std::int64_t all = what_.batch * what_.heads;
      outputs_alone.push_back(read<float>(problem->o().address(), all * columns));
      logarithms_alone.push_back(read<float>(problem->lse().address(), all));
    }
    const Address result = of(results_, rank).address();
    const auto found = read<std::uint16_t>(result, rows() * columns);
    const auto found_lse = read<float>(logarithms(result).address, rows());
    for (std::int64_t row = 0; row < rows(); ++row) {
      const std::int64_t head = row / heads_ * what_.heads + rank * heads_ + row % heads_;
      double most = -std::numeric_limits<double>::infinity();
      for (const auto& lse : logarithms_alone) most = std::max<double>(most, of(lse, head));
      double weights = 0;
      for (const auto& lse : logarithms_alone) weights += std::exp(of(lse, head) - most);
      const double wanted_lse = most + std::log(weights);
      if (!(std::abs(of(found_lse, row) - wanted_lse) < 1e-3)) {
        return fmt::format("rank {} has the logarithm {} of row {}, and all say {}", rank,
                           of(found_lse, row), row, wanted_lse);
      }
      for (std::int64_t column = 0; column < columns; ++column) {
        double sum = 0;
        double size = 0;
        for (int from = 0; from < ranks_; ++from) {
          const double weight = std::exp(of(of(logarithms_alone, from), head) - most) / weights;
          const double value = weight * of(of(outputs_alone, from), head * columns + column);
          sum += value;
          size += std::abs(value);
        }
        const double value = widen_bf16(of(found, row * columns + column));
        if (std::abs(value - sum) <= kBound * size) continue;
        return fmt::format("rank {} has {} in row {}, column {}, and all say {}", rank, value, row,
                           column, sum);
      }
    }
    return "";
  }

  Bench* bench_;
  AttentionCase what_;
  int ranks_;
  std::int64_t heads_;  // per rank
  std::vector<std::unique_ptr<AttentionProblem>> problems_;
  std::vector<cuda::DeviceMemory> inboxes_;  // per rank: a state from each rank
  std::vector<cuda::DeviceMemory> results_;
  RanksBeside beside_;
  std::deque<cuda::PreparedDecode> plain_;
  std::deque<cuda::PreparedDecode> exchanging_;
};

AttentionCase exchanged_case(AttentionCase made) {
  made.out = device::Element::F32;
  made.name = fmt::format("{}x{} {}/{}{}", made.batch, made.keys, made.heads, made.kv_heads,
                          made.values_in_keys ? " latent" : "");
  return made;
}

// Query heads of a key head: one head group, or 2 to 4.
std::int64_t draw_group(Draw& draw) {
  constexpr std::array<std::int64_t, 6> kMany = {12, 16, 24, 32, 48, 64};
  if (draw.coin()) return draw.between(1, 8);
  return kMany[static_cast<std::size_t>(draw.between(0, kMany.size() - 1))];
}

void check_exchange(Bench& bench, Draw& draw, int ranks) {
  // The heads of a rank may be only some of those that share keys.
  const bool splits = draw.coin();
  const std::int64_t drawn = draw_group(draw);
  const std::int64_t group = splits ? (drawn + ranks - 1) / ranks * ranks : drawn;
  const std::int64_t kv_heads =
      splits ? draw.between(1, 3) : ranks * draw.between(1, group > 8 ? 1 : 2);
  const std::int64_t batch = draw.between(1, 9);
  const std::int64_t keys = draw.between(1, 3000);
  const std::int64_t kind = draw.between(0, 2);
  const AttentionCase what =
      exchanged_case(kind == 0 ? one_latent_query(batch, keys, kv_heads, group)
                               : one_query(batch, keys, kv_heads, group, 64 * kind));
  const std::string name = fmt::format("{} on {} ranks", what.name, ranks);
  if (!bench.report().begins("exchange check", name)) return;
  AttentionOfRanks attention(bench, what, ranks, draw.bits());
  attention.prepare(bench.gpu().processors() / ranks);
  bench.report().add_check("exchange check", name, attention.find_fault(draw));
}

// Times one rank's kernel alone, with all that other ranks send in place: the cost of sending and
// combining. Then all ranks together, with and without exchange. Keys are read from memory.
void time_exchange(Bench& bench, const AttentionCase& what, int ranks) {
  const std::string name = fmt::format("{} on {} ranks", what.name, ranks);
  if (!bench.report().begins(kExchange, name)) return;
  const int processors = bench.gpu().processors();
  AttentionOfRanks beside(bench, what, ranks, bench.options().seed);
  beside.prepare(processors / ranks);
  AttentionOfRanks alone(bench, what, ranks, bench.options().seed);
  alone.prepare(processors);
  Draw draw(bench.options().seed);
  const std::string wrong = beside.find_fault(draw);
  const std::vector<int> order = draw.order(static_cast<std::size_t>(ranks));
  const std::vector<Contender> contenders = {
      {.name = "plain", .call = [&](int, CUstream stream) { alone.launch_plain(stream); }},
      {.name = "alone",
       .call = [&](int, CUstream stream) { alone.launch_exchanging(stream); },
       .prepare = [&](CUstream stream) { alone.bring_all(stream); }},
      {.name = "plain beside",
       .call = [&](int, CUstream stream) { beside.run_plain(order, stream); }},
      {.name = "beside",
       .call = [&](int, CUstream stream) { beside.run_exchanging(order, stream); },
       .prepare = [&](CUstream stream) { beside.begin_epoch(stream); }}};
  const auto timings = bench.stopwatch().time(contenders, bench.options().rounds, 1);
  bench.report().add_check(kExchange, name, wrong,
                           {{"plain us", timings[0].median_us},
                            {"alone us", timings[1].median_us},
                            {"more us", timings[1].median_us - timings[0].median_us},
                            {"plain beside us", timings[2].median_us},
                            {"beside us", timings[3].median_us}});
}

}  // namespace

void exchange_states(Bench& bench) {
  Draw draw(bench.options().seed + 40);
  for (int i = 0; i < bench.times(60); ++i) {
    check_exchange(bench, draw, static_cast<int>(draw.between(2, 8)));
  }
  for (const int ranks : {2, 4, 8}) {
    for (const std::int64_t batch : {1, 8, 32}) {
      const std::int64_t keys = 8192 / ranks;
      time_exchange(bench, exchanged_case(one_query(batch, keys, 8, 8, 128)), ranks);
      time_exchange(bench, exchanged_case(one_query(batch, keys, 1, 64, 128)), ranks);
      time_exchange(bench, exchanged_case(one_latent_query(batch, keys, 1, 128)), ranks);
    }
  }
}

}  // namespace harpe::bench
