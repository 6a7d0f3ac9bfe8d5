// Attention of few queries per sequence: compares the kernel for few queries with the kernel for
// many, with its keys cut into parts, and with cuDNN.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "bench/cuda/attention_experiments.h"
#include "bench/cuda/attention_problem.h"
#include "bench/cuda/attention_shapes.h"
#include "bench/cuda/must.h"
#include "exec/cuda/kernels/attention/decode.h"
#include "exec/cuda/kernels/attention/decode_variants.h"
#include "exec/cuda/kernels/attention/prepared_attention.h"
#include "exec/cuda/kernels/attention/prepared_decode.h"

namespace harpe::bench {
namespace {

constexpr const char* kDecode = "decode";
constexpr const char* kCheckDecode = "check decode";

// The queries of a sequence that share keys: rows of each of the heads of a group.
struct Queries {
  std::int64_t rows = 1;
  std::int64_t group = 1;
};

// Queries for which a kernel of so many columns is chosen.
Queries draw_queries(Draw& draw, int columns) {
  // The last ones are cut into 2 to 8 head groups, or, with 32 columns, into up to 4.
  constexpr Queries kMany[] = {{1, 9},  {1, 12}, {1, 16}, {2, 8},   {4, 3}, {16, 1}, {1, 24},
                               {1, 32}, {1, 40}, {1, 64}, {1, 128}, {8, 8}, {3, 12}};
  if (columns == 16 || (columns == 32 && draw.coin())) {
    return kMany[draw.between(0, std::ssize(kMany) - 1)];
  }
  const std::int64_t group = draw.between(1, columns);
  return {.rows = draw.between(1, columns / group), .group = group};
}

// The share of keys of a thread block is random too.
AttentionCase draw_case(Draw& draw, const device::DecodeConfig& config) {
  const std::int64_t most = draw.coin() ? 300 : 5000;
  const Queries queries = draw_queries(draw, config.columns);
  const std::int64_t kv_heads = draw.between(1, queries.group > 16 ? 2 : 8);
  const std::int64_t batch = draw.between(1, draw.coin() ? 33 : 4);
  const std::int64_t keys = draw.between(1, most);
  AttentionCase made = values_in_keys(config)
                           ? one_latent_query(batch, keys, kv_heads, queries.group)
                           : one_query(batch, keys, kv_heads, queries.group, config.head_dim);
  made.rows = queries.rows;
  leave_whole(made);
  made.in = config.element;
  made.out = config.output;
  made.packed = draw.coin();
  made.name = fmt::format("{} {}", cuda::decode_variant(config).name, describe(made));
  return made;
}

void check_case(Bench& bench, const AttentionCase& what, int shares) {
  CUstream const stream = bench.stream();
  AttentionProblem problem(bench.gpu(), bench.gpu(), what, bench.options().seed + 60, stream);
  cuda::AttentionSpec spec = problem.spec();
  spec.shares = shares;
  const auto run = must(cuda::PreparedDecode::make(bench.gpu().library(), spec));
  VerdictBox verdict(bench.gpu());
  std::string wrong;
  // Catches state left between launches.
  for (int launch = 0; launch < 3 && wrong.empty(); ++launch) {
    problem.reset(stream);
    verdict.clear(stream);
    must(run.launch(stream));
    problem.check(verdict.device(), stream);
    wrong = describe(verdict.read(stream), what.heads * what.value_dim);
  }
  bench.report().add_check(kCheckDecode, fmt::format("{} in {} shares", what.name, shares), wrong);
}

// One shape with the ways to compute it; the cache is overwritten before each call.
class DecodeMatch {
 public:
  DecodeMatch(Bench& bench, const AttentionCase& what)
      : bench_(&bench),
        what_(what),
        problem_(bench.gpu(), bench.gpu(), what, bench.options().seed, bench.stream()) {
    const int processors = bench.gpu().processors();
    cuda::AttentionSpec spec = problem_.spec();
    spec.shares = cuda::choose_shares(spec, processors);
    ways_.push_back(
        {.name = cuda::print_shares(spec.shares, cuda::cut_heads(spec)), .call = of_shares(spec)});
    spec.keys_are_fixed = true;
    ways_.push_back({.name = "ahead", .call = of_shares(spec)});
    if (what.values_in_keys) return;  // only this kernel takes them
    add_parts();
    add_library();
  }

  void report() {
    VerdictBox verdict(bench_->gpu());
    const auto timings = bench_->stopwatch().time(ways_, bench_->options().rounds, 1);
    const std::int64_t elements = what_.query_dim + (what_.values_in_keys ? 0 : what_.value_dim);
    const double bytes = 2.0 * static_cast<double>(what_.batch * what_.keys * what_.kv_heads) *
                         static_cast<double>(elements);
    Row row{.experiment = kDecode, .name = what_.name, .cells = {}};
    row.cells = {{"variant", ways_.front().name},
                 {"us", timings[0].median_us},
                 {"TB/s", bytes / timings[0].median_us * 1e-6},
                 {"spread", timings[0].spread}};
    for (std::size_t i = 1; i < ways_.size(); ++i) {
      row.cells.emplace_back(ways_[i].name + " us", timings[i].median_us);
      row.cells.emplace_back(ways_[i].name + " / ours",
                             timings[i].median_us / timings[0].median_us);
    }
    std::string wrong = wrong_in(ways_[0], verdict);
    if (wrong.empty()) wrong = wrong_in(ways_[1], verdict);
    bench_->report().add_check(kDecode, what_.name, wrong, std::move(row.cells));
  }

 private:
  std::function<void(int, CUstream)> of_shares(const cuda::AttentionSpec& spec) {
    const auto run = std::make_shared<cuda::PreparedDecode>(
        must(cuda::PreparedDecode::make(bench_->gpu().library(), spec)));
    return [run](int, CUstream stream) { must(run->launch(stream)); };
  }

  void add_parts() {
    cuda::AttentionSpec spec = cuda::with_groups_as_rows(problem_.spec());
    spec.parts = cuda::choose_parts(spec, bench_->gpu().processors());
    const device::AttentionConfig config = cuda::choose_attention(spec);
    parts_ = std::make_unique<cuda::PreparedAttention>(
        must(cuda::PreparedAttention::make(bench_->gpu().library(), spec, config)));
    ways_.push_back(
        {.name = "parts", .call = [this](int, CUstream stream) { must(parts_->launch(stream)); }});
  }

  void add_library() {
    const auto& cudnn = bench_->cudnn();
    if (!cudnn.ok()) return;
    auto made = cudnn->prepare({.batch = what_.batch,
                                .rows = 1,
                                .keys = what_.keys,
                                .heads = what_.heads,
                                .kv_heads = what_.kv_heads,
                                .columns = what_.query_dim,
                                .v_columns = what_.value_dim,
                                .causal = false,
                                .in = what_.in},
                               true);
    if (!made.ok()) {
      bench_->report().note(made.error().reason);
      return;
    }
    library_ = std::move(made).value();
    workspace_.emplace(
        bench_->gpu().memory(std::max<std::int64_t>(library_->workspace_bytes(), 16)));
    ways_.push_back({.name = "cuDNN", .call = [this](int, CUstream stream) {
                       const library::AttentionAddresses at{.q = problem_.q().address(),
                                                            .k = problem_.k().address(),
                                                            .v = problem_.v().address(),
                                                            .o = problem_.o().address(),
                                                            .lse = problem_.lse().address()};
                       HP_CHECK(library_->launch(at, workspace_->address(), stream),
                                "cuDNN refused a graph it had built");
                     }});
  }

  [[nodiscard]] std::string wrong_in(const Contender& way, VerdictBox& verdict) {
    CUstream const stream = bench_->stream();
    problem_.reset(stream);
    verdict.clear(stream);
    way.call(0, stream);
    problem_.check(verdict.device(), stream);
    return describe(verdict.read(stream), what_.heads * what_.value_dim);
  }

  Bench* bench_;
  AttentionCase what_;
  AttentionProblem problem_;
  std::unique_ptr<cuda::PreparedAttention> parts_;
  std::unique_ptr<library::LibraryAttention> library_;
  std::optional<cuda::DeviceMemory> workspace_;
  std::vector<Contender> ways_;
};

}  // namespace

void check_decode(Bench& bench) {
  Draw draw(bench.options().seed + 26);
  for (const device::DecodeConfig& config : cuda::decode_configs()) {
    if (config.exchanges) continue;  // checked by exchange_states
    for (int turn = 0; turn < bench.times(10); ++turn) {
      const AttentionCase what = draw_case(draw, config);
      const int processors = bench.gpu().processors();
      const auto drawn = static_cast<int>(draw.between(1, processors));
      if (!bench.report().begins(kCheckDecode, what.name)) continue;
      check_case(bench, what, draw.coin() ? processors : drawn);
    }
  }
}

// Heads 32/8 as in Llama-3 8B, 64/8 as in 70B, 64/4 as in Qwen3 235B, and 64/1, one key head for
// all. Then latent attention of 16 and of 128 heads, as in DeepSeek-V3 on 8 ranks or 1.
void time_decode(Bench& bench) {
  struct Size {
    std::int64_t batch, keys;
  };
  constexpr std::array kSizes = {Size{1, 4096},  Size{1, 8192},  Size{1, 32768}, Size{1, 131072},
                                 Size{8, 8192},  Size{8, 32768}, Size{20, 8192}, Size{32, 8192},
                                 Size{33, 5001}, Size{32, 32768}};
  struct Heads {
    std::int64_t kv_heads, group;
  };
  constexpr std::array kHeads = {Heads{8, 4}, Heads{8, 8}, Heads{4, 16}, Heads{1, 64}};
  for (const Heads& heads : kHeads) {
    for (const Size& size : kSizes) {
      if (heads.group == 8 && size.batch > 8) continue;
      AttentionCase what = one_query(size.batch, size.keys, heads.kv_heads, heads.group, 128);
      what.name = fmt::format("{}x{} {}/{}", size.batch, size.keys, heads.kv_heads * heads.group,
                              heads.kv_heads);
      if (bench.report().begins(kDecode, what.name)) DecodeMatch(bench, what).report();
    }
  }
  for (const std::int64_t group : {16, 128}) {
    for (const Size& size : kSizes) {
      AttentionCase what = one_latent_query(size.batch, size.keys, 1, group);
      what.name = fmt::format("{}x{} {}/1 latent", size.batch, size.keys, group);
      if (bench.report().begins(kDecode, what.name)) DecodeMatch(bench, what).report();
    }
  }
}

}  // namespace harpe::bench
