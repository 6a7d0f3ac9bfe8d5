#include "schedule/named/moe.h"

#include <algorithm>
#include <array>

#include "schedule/named/builder.h"
#include "schedule/named/moe_shape.h"

namespace harpe {
namespace {

using Level = MeshPlan::Level;

constexpr std::int64_t kExpertChunks = 4;  // messages per pair of ranks, so that work starts early

constexpr Transfer kPushRows{How::Direct, Initiator::Src, std::nullopt, Via::Sm, Signal::Counter};
constexpr Transfer kFetchRows{How::Direct, Initiator::Dst, std::nullopt, Via::Ce, Signal::Event};
constexpr Transfer kGatherSmall{How::Bulk, std::nullopt, std::nullopt, Via::Nccl, std::nullopt};

// Tokens, slots and experts divided over the same levels, outermost first.
struct Experts {
  MoeShape shape;
  ScheduleBuilder builder;
  std::vector<Level> levels;
  std::vector<std::string> tokens, slots, experts;  // digits per level
  std::string chunk;                                // of a rank's experts, or ""
};

Checked<Ok> require_experts(std::string_view schedule, const MoeShape& shape, std::int64_t ranks) {
  if (shape.experts.size >= ranks) return Ok{};
  return make_diag(DiagCode::S617, {{"schedule", schedule},
                                    {"experts", shape.experts.size},
                                    {"ranks", ranks},
                                    {"alternatives", "fewer ranks"}});
}

Checked<Experts> divide(std::string_view schedule, const Program& program, const MeshPlan& plan,
                        const std::vector<Level>& levels, bool chunked) {
  HP_TRY(MoeShape shape, read_moe(program));
  const std::int64_t ranks = plan.all().ranks;
  HP_REQUIRE_OK(require_experts(schedule, shape, ranks));
  Experts out{std::move(shape), ScheduleBuilder(schedule, program, plan), levels, {}, {}, {}, ""};
  std::vector<std::int64_t> factors;
  for (const Level& level : levels) factors.push_back(level.ranks);
  ScheduleBuilder& builder = out.builder;
  out.tokens = builder.tile(out.shape.tokens.name, factors, "t");
  out.slots = builder.tile(out.shape.slots, factors, "c");
  if (chunked) {
    factors.push_back(std::clamp<std::int64_t>(out.shape.experts.size / ranks, 1, kExpertChunks));
  }
  out.experts = builder.tile(out.shape.experts.name, factors, "e");
  if (chunked) out.chunk = out.experts[levels.size()];
  RouteLayout slab{out.shape.route, RouteLayoutKind::Slab, {}};
  for (std::size_t i = 0; i < levels.size(); ++i) {
    builder.shard(out.shape.by_token, out.tokens[i], levels[i]);
    builder.shard(out.shape.by_expert, out.experts[i], levels[i]);
    slab.digits.insert(slab.digits.end(), {out.slots[i], out.tokens[i]});
  }
  builder.add(slab);
  return out;
}

// Parallelizes the nest over all levels, with one digit per level.
void spread(Experts& moe, const std::string& nest, const std::vector<std::string>& digits) {
  for (std::size_t i = 0; i < moe.levels.size(); ++i) {
    moe.builder.parallelize(nest, digits[i], moe.levels[i]);
  }
}

void spread_rest(Experts& moe) {
  for (const std::string& nest : moe.shape.token_nests) spread(moe, nest, moe.tokens);
  for (const auto& [nest, buffer] : moe.shape.whole_reads) {
    for (std::size_t i = moe.levels.size(); i-- > 0;) {
      moe.builder.stage(nest, {buffer}, moe.levels[i], "", kGatherSmall);
    }
  }
  for (const std::string& nest : moe.shape.expert_nests) {
    spread(moe, nest, moe.experts);
    if (!moe.chunk.empty()) moe.builder.add(Serialize{nest, moe.chunk});
  }
}

void cut_by_chunk(Experts& moe, const std::string& nest, const std::string& buffer,
                  const Level& level) {
  if (moe.chunk.empty()) return;
  moe.builder.add(ChunkMove{nest, {buffer}, moe.builder.axes(level), std::nullopt, moe.chunk});
}

// Each rank packs its own tokens' rows by expert and sends them; results return the same way. With
// several levels, rows first cross the outermost level.
void exchange(Experts& moe, const std::vector<Transfer>& outward) {
  const MoeShape& shape = moe.shape;
  spread(moe, shape.dispatch, moe.slots);
  for (std::size_t i = 0; i < moe.levels.size(); ++i) {
    moe.builder.drain(shape.dispatch, {shape.gathered}, moe.levels[i], "", outward[i]);
    cut_by_chunk(moe, shape.dispatch, shape.gathered, moe.levels[i]);
  }
}

void exchange_back(Experts& moe, const std::vector<Transfer>& outward) {
  const MoeShape& shape = moe.shape;
  spread(moe, shape.combine, moe.tokens);
  for (std::size_t i = moe.levels.size(); i-- > 0;) {
    moe.builder.stage(shape.combine, {shape.made}, moe.levels[i], "", outward[i]);
    cut_by_chunk(moe, shape.combine, shape.made, moe.levels[i]);
  }
}

// Each rank sums its experts' rows for every token. Sums are reduced inside the inner levels first,
// so one row per token crosses each outer level.
void reduce_back(Experts& moe, const Transfer& transfer) {
  const MoeShape& shape = moe.shape;
  spread(moe, shape.combine, moe.experts);
  for (std::size_t i = moe.levels.size(); i-- > 0;) {
    moe.builder.stage(shape.combine, {shape.index, shape.weights}, moe.levels[i], "", kGatherSmall);
  }
  for (std::size_t i = moe.levels.size(); i-- > 0;) {
    moe.builder.drain(shape.combine, {shape.result}, moe.levels[i], "", transfer);
  }
}

// Sends every token's row to every rank once; the ranks of the experts pick the rows that they
// need.
void gather_tokens(Experts& moe, const Transfer& transfer) {
  const MoeShape& shape = moe.shape;
  spread(moe, shape.dispatch, moe.experts);
  for (const Level& level : moe.levels) {
    moe.builder.stage(shape.dispatch, {shape.sources, shape.index}, level, "", transfer);
  }
}

Checked<Experts> divide_flat(std::string_view schedule, const Program& program, const Mesh& mesh,
                             bool chunked) {
  const MeshPlan plan(mesh);
  return divide(schedule, program, plan, {plan.all()}, chunked);
}

Checked<Experts> divide_twice(std::string_view schedule, const Program& program, const Mesh& mesh) {
  MeshPlan plan(mesh);
  const auto [outer, inner] = plan.outer_and_inner(smaller_factor(plan.all().ranks));
  return divide(schedule, program, plan, {outer, inner}, false);
}

Checked<Script> exchange_flat(std::string_view schedule, const Program& program, const Mesh& mesh,
                              const Transfer& transfer, bool chunked) {
  HP_TRY(Experts moe, divide_flat(schedule, program, mesh, chunked));
  spread_rest(moe);
  exchange(moe, {transfer});
  exchange_back(moe, {transfer});
  return moe.builder.take();
}

Checked<Script> moe_bulk(const Program& program, const Mesh& mesh) {
  return exchange_flat("bulk", program, mesh, kBulk, false);
}
Checked<Script> moe_push(const Program& program, const Mesh& mesh) {
  return exchange_flat("push", program, mesh, kPushRows, true);
}
Checked<Script> moe_fetch(const Program& program, const Mesh& mesh) {
  return exchange_flat("fetch", program, mesh, kFetchRows, true);
}

Checked<Script> moe_allgather(const Program& program, const Mesh& mesh) {
  HP_TRY(Experts moe, divide_flat("allgather", program, mesh, false));
  spread_rest(moe);
  gather_tokens(moe, kBulk);
  reduce_back(moe, kBulk);
  return moe.builder.take();
}

Checked<Script> moe_hierarchical(const Program& program, const Mesh& mesh) {
  HP_TRY(Experts moe, divide_twice("hierarchical", program, mesh));
  spread_rest(moe);
  exchange(moe, {kPushRows, kPushRows});
  exchange_back(moe, {kPushRows, kPushRows});
  return moe.builder.take();
}

Checked<Script> moe_reduce(const Program& program, const Mesh& mesh) {
  HP_TRY(Experts moe, divide_twice("hierarchical_reduce", program, mesh));
  spread_rest(moe);
  exchange(moe, {kPushRows, kPushRows});
  reduce_back(moe, kPushRows);
  return moe.builder.take();
}

Checked<Script> moe_dedup(const Program& program, const Mesh& mesh) {
  HP_TRY(Experts moe, divide_twice("dedup", program, mesh));
  spread_rest(moe);
  gather_tokens(moe, kPushRows);
  reduce_back(moe, kPushRows);
  return moe.builder.take();
}

constexpr std::array kMoeSchedules = {
    NamedSchedule{"push",
                  "rows pushed to their experts in chunks of experts, and results pushed back",
                  &moe_push},
    NamedSchedule{"bulk", "one all-to-all of rows to their experts, and one back", &moe_bulk},
    NamedSchedule{"fetch", "rows fetched by their experts' ranks in chunks, and results fetched",
                  &moe_fetch},
    NamedSchedule{"allgather",
                  "all tokens gathered everywhere, results reduced and scattered to their owners",
                  &moe_allgather},
    NamedSchedule{"hierarchical",
                  "rows pushed across the first mesh axis, then inside it, and back; one axis of P "
                  "ranks is u x P/u (8: 2x4)",
                  &moe_hierarchical},
    NamedSchedule{"hierarchical_reduce",
                  "as hierarchical, and results added up inside the inner axes before one row per "
                  "token crosses back",
                  &moe_reduce},
    NamedSchedule{
        "dedup",
        "every token crosses the first mesh axis once and is handed on inside it; results "
        "as in hierarchical_reduce",
        &moe_dedup},
};

}  // namespace

std::span<const NamedSchedule> moe_schedules() { return kMoeSchedules; }

}  // namespace harpe
