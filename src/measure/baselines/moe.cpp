#include <algorithm>

#include "measure/baselines/baselines.h"
#include "measure/baselines/gemms.h"
#include "measure/baselines/moe_layout.h"
#include "measure/baselines/moves.h"

namespace harpe::library {
namespace {

using cuda::DeviceAddress;

constexpr std::int64_t kNumber = 4;  // bytes of an index, a weight, a logit
constexpr std::size_t kQueues = 4;   // GEMMs in parallel
constexpr std::int64_t kQueueWorkspaceBytes = std::int64_t{32} << 20;

Diag refuse_experts(const std::string& reason) {
  return make_diag(DiagCode::G081, {{"what", "a layer of experts"}, {"reason", reason}});
}

// Independent GEMMs on several streams in parallel.
struct Queues {
  std::vector<cuda::Stream> streams;  // beside the member's own stream
  std::vector<cuda::Event> ends;      // one per stream
  std::vector<cuda::Event> begin;     // a single event
  std::vector<CublasLt> gemms;        // one per queue, the member's own first
};

Checked<std::shared_ptr<Queues>> open_queues(const Member& member, Work& work) {
  if (!member.products->ok()) return refuse_experts((*member.products).error().reason);
  auto queues = std::make_shared<Queues>();
  queues->gemms.push_back(**member.products);
  HP_TRY(cuda::Event begin, cuda::Event::create_untimed(member.device));
  queues->begin.push_back(std::move(begin));
  for (std::size_t i = 1; i < kQueues; ++i) {
    HP_TRY(const DeviceAddress space, work.reserve(member, kQueueWorkspaceBytes));
    HP_TRY(cuda::Stream stream, cuda::Stream::create(member.device));
    HP_TRY(cuda::Event end, cuda::Event::create_untimed(member.device));
    queues->streams.push_back(std::move(stream));
    queues->ends.push_back(std::move(end));
    queues->gemms.push_back(
        (*member.products)->with({.address = space, .bytes = kQueueWorkspaceBytes}));
  }
  return queues;
}

// Part i runs in queue i modulo their number. All queues fork from and join the member's stream.
Checked<Ok> order_in_queues(const Member& member, const Queues& queues,
                            const std::vector<const Arithmetic*>& parts) {
  HP_REQUIRE_OK(checked(queues.begin.front().record(member.stream)));
  for (const cuda::Stream& stream : queues.streams) {
    HP_REQUIRE_OK(checked(stream.wait_for(queues.begin.front())));
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t queue = i % kQueues;
    HP_REQUIRE_OK(
        parts[i]->order((queue == 0 ? member.stream : queues.streams[queue - 1]).handle()));
  }
  for (std::size_t i = 0; i < queues.streams.size(); ++i) {
    HP_REQUIRE_OK(checked(queues.ends[i].record(queues.streams[i])));
    HP_REQUIRE_OK(checked(member.stream.wait_for(queues.ends[i])));
  }
  return Ok{};
}

// Rows of each expert times its weights, row-major: [rows, depth] x [depth, columns].
struct ExpertGemms {
  DeviceAddress rows = 0;
  DeviceAddress weights = 0;
  DeviceAddress results = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
};

Checked<Step> gemms_step(Member& member, Work& work, const std::shared_ptr<Queues>& queues,
                         const MoeLayout& layout, const ExpertGemms& at, device::Element element) {
  std::vector<const Arithmetic*> parts;
  for (std::size_t expert = 0; expert + 1 < layout.grouped.size(); ++expert) {
    const std::int64_t first = layout.grouped[expert];
    const std::int64_t rows = layout.grouped[expert + 1] - first;
    if (rows == 0) continue;
    const auto bytes = [](std::int64_t elements) {
      return static_cast<DeviceAddress>(elements * kElementBytes);
    };
    const auto number = static_cast<std::int64_t>(expert);
    const GemmAddresses own{.a = at.rows + bytes(first * at.depth),
                            .b = at.weights + bytes(number * at.depth * at.columns),
                            .c = at.results + bytes(first * at.columns)};
    HP_TRY(std::vector<Step> ways, gemm_ways(queues->gemms[parts.size() % kQueues],
                                             {.m = rows,
                                              .n = at.columns,
                                              .k = at.depth,
                                              .in = element,
                                              .out = element,
                                              .layout = device::GemmLayout::NMajor,
                                              .a_stride = at.depth,
                                              .b_stride = at.columns,
                                              .c_stride = at.columns},
                                             own));
    parts.push_back(&work.choose_from(std::move(ways)));
  }
  return Step(
      [&member, queues, parts](CUstream) { return order_in_queues(member, *queues, parts); });
}

// A rank's memory, for the layout's actions and for NCCL.
struct Memory {
  MoePlaces at;
  DeviceAddress gate_weights = 0;  // [expert, hidden, gate and up, inter]
  DeviceAddress down_weights = 0;  // [expert, inter, hidden]
};

template <class T = std::byte>
T* pointer(DeviceAddress address) {
  return reinterpret_cast<T*>(address);
}
DeviceAddress address_of(const std::byte* pointer) {
  return reinterpret_cast<DeviceAddress>(pointer);
}

Checked<Memory> reserve_memory(const Member& member, Work& work, const MoeSizes& s,
                               const MoeLayout& layout) {
  Memory memory;
  MoePlaces& at = memory.at;
  const auto reserve = [&](std::byte*& place, std::int64_t bytes) -> Checked<Ok> {
    HP_TRY(const DeviceAddress address, work.reserve(member, std::max<std::int64_t>(bytes, 16)));
    place = pointer(address);
    return Ok{};
  };
  const std::int64_t came = layout.received_rows();
  const std::int64_t choices = s.tokens * s.choices;
  HP_REQUIRE_OK(reserve(at.x, s.tokens * s.row_bytes()));
  HP_REQUIRE_OK(reserve(at.y, s.tokens * s.row_bytes()));
  HP_REQUIRE_OK(reserve(at.router, s.tokens * s.all_experts() * kNumber));
  HP_REQUIRE_OK(reserve(at.index, choices * kNumber));
  HP_REQUIRE_OK(reserve(at.weight, choices * kNumber));
  HP_REQUIRE_OK(reserve(at.sent, choices * s.row_bytes()));
  HP_REQUIRE_OK(reserve(at.returned, choices * s.row_bytes()));
  HP_REQUIRE_OK(reserve(at.grouped, came * s.row_bytes()));
  HP_REQUIRE_OK(reserve(at.made, came * s.row_bytes()));
  HP_REQUIRE_OK(reserve(at.gates, came * 2 * s.inter * kElementBytes));
  HP_REQUIRE_OK(reserve(at.act, came * s.inter * kElementBytes));
  at.received = at.grouped;
  at.leaving = at.made;
  if (!layout.experts_of_rows.empty()) {
    HP_REQUIRE_OK(reserve(at.received, came * s.row_bytes()));
    HP_REQUIRE_OK(reserve(at.leaving, came * s.row_bytes()));
    HP_TRY(const DeviceAddress experts,
           work.keep(member, std::as_bytes(std::span(layout.experts_of_rows))));
    HP_TRY(const DeviceAddress ranks,
           work.keep(member, std::as_bytes(std::span(layout.ranks_of_rows))));
    at.experts_of_rows = pointer(experts);
    at.ranks_of_rows = pointer(ranks);
  }
  HP_TRY(const DeviceAddress used, work.reserve(member, (s.all_experts() + s.ranks) * kNumber));
  at.used = pointer<std::int32_t>(used);
  const std::int64_t weights = s.experts * s.hidden * s.inter * kElementBytes;
  HP_TRY(memory.gate_weights, work.reserve(member, 2 * weights));
  HP_TRY(memory.down_weights, work.reserve(member, weights));
  return memory;
}

void add_parts(const MoeSizes& s, int rank, const Memory& memory, BaselineParts& parts) {
  const auto add = [&](const char* name, const std::byte* address, std::int64_t bytes) {
    parts.tensors[name].parts.push_back({rank, address_of(address), rank * bytes, bytes, bytes, 1});
  };
  add("x", memory.at.x, s.tokens * s.row_bytes());
  add("y", memory.at.y, s.tokens * s.row_bytes());
  add("router", memory.at.router, s.tokens * s.all_experts() * kNumber);
  add("w2", pointer(memory.down_weights), s.experts * s.inter * s.row_bytes());
  const std::int64_t row = s.inter * kElementBytes;
  const std::int64_t rows = s.experts * s.hidden;
  const auto add_half = [&](const char* name, std::int64_t before) {
    parts.tensors[name].parts.push_back(
        {.rank = rank,
         .address = memory.gate_weights + static_cast<DeviceAddress>(before),
         .offset = rank * rows * row,
         .pitch = row,
         .bytes = row,
         .rows = rows,
         .own_pitch = 2 * row});
  };
  add_half("w1", 0);
  add_half("w3", row);
}

std::vector<Message> messages_at(const MoeSizes& s, const std::vector<RowMessage>& messages,
                                 const std::byte* rows, device::Element element) {
  std::vector<Message> all;
  for (const RowMessage& one : messages) {
    all.push_back({.peer = one.peer,
                   .elements = {.address = address_of(rows + one.first * s.row_bytes()),
                                .count = one.rows * s.hidden,
                                .type = element}});
  }
  return all;
}

Checked<Ok> add_messages(Member& member, Work& work, std::vector<Message> sends,
                         std::vector<Message> receives) {
  work.steps.emplace_back(
      [&member, sends = std::move(sends), receives = std::move(receives)](CUstream stream) {
        return member.nccl->exchange(sends, receives, stream);
      });
  return Ok{};
}

Checked<Ok> add_action(const Member& member, Work& work, const actions::Action& action) {
  HP_TRY(Step step, action_step(member, action));
  work.steps.push_back(std::move(step));
  return Ok{};
}

// Gate and up of every expert, the activation, and down.
Checked<Ok> add_experts(Member& member, Work& work, const MoeSizes& s, const MoeLayout& layout,
                        const Memory& memory, device::Element element) {
  const MoePlaces& at = memory.at;
  HP_TRY(const std::shared_ptr<Queues> queues, open_queues(member, work));
  const ExpertGemms gates{.rows = address_of(at.grouped),
                          .weights = memory.gate_weights,
                          .results = address_of(at.gates),
                          .columns = 2 * s.inter,
                          .depth = s.hidden};
  const ExpertGemms down{.rows = address_of(at.act),
                         .weights = memory.down_weights,
                         .results = address_of(at.made),
                         .columns = s.hidden,
                         .depth = s.inter};
  std::vector<Step> steps(3);
  HP_TRY(steps[0], gemms_step(member, work, queues, layout, gates, element));
  HP_TRY(steps[1], action_step(member, gate_action(s, layout, at)));
  HP_TRY(steps[2], gemms_step(member, work, queues, layout, down, element));
  work.all_arithmetic = [steps](CUstream stream) -> Checked<Ok> {
    for (const Step& step : steps) HP_REQUIRE_OK(step(stream));
    return Ok{};
  };
  work.steps.push_back(work.all_arithmetic);
  return Ok{};
}

Checked<Ok> add_rank(Member& member, const MoeSizes& s, const MoeLayout& layout,
                     BaselineParts& parts) {
  Work& work = *parts.work.emplace_back(std::make_unique<Work>());
  HP_TRY(const Memory memory, reserve_memory(member, work, s, layout));
  const MoePlaces& at = memory.at;
  const device::Element element = element_of(s.dtype);
  const bool sorts = !layout.experts_of_rows.empty();
  HP_REQUIRE_OK(add_action(member, work, choose_action(s, at)));
  HP_REQUIRE_OK(add_action(member, work, send_action(s, layout, at)));
  HP_REQUIRE_OK(add_messages(member, work, messages_at(s, layout.sends, at.sent, element),
                             messages_at(s, layout.receives, at.received, element)));
  if (sorts) HP_REQUIRE_OK(add_action(member, work, group_action(s, layout, at)));
  HP_REQUIRE_OK(add_experts(member, work, s, layout, memory, element));
  if (sorts) HP_REQUIRE_OK(add_action(member, work, ungroup_action(s, layout, at)));
  HP_REQUIRE_OK(add_messages(member, work, messages_at(s, layout.receives, at.leaving, element),
                             messages_at(s, layout.sends, at.returned, element)));
  HP_REQUIRE_OK(add_action(member, work, combine_action(s, layout, at)));
  add_parts(s, member.rank, memory, parts);
  return Ok{};
}

// Moves and GEMMs use 16-byte vectors.
Checked<MoeSizes> sizes_of(const Subject& subject, int ranks) {
  if (subject.router == nullptr || subject.dtype == DType::F32) {
    return refuse_experts("its inputs are not what it is known with");
  }
  if (subject.hidden % 8 != 0 || subject.inter % 8 != 0) {
    return refuse_experts("rows are no multiple of 8 wide");
  }
  MoeSizes sizes{.ranks = ranks,
                 .choices = subject.topk,
                 .hidden = subject.hidden,
                 .inter = subject.inter,
                 .dtype = subject.dtype};
  HP_TRY(sizes.tokens, share_of("tokens", subject.tokens, ranks));
  HP_TRY(sizes.experts, share_of("experts", subject.experts, ranks));
  return sizes;
}

Checked<std::unique_ptr<Baseline>> make(const std::shared_ptr<Team>& team, const Subject& subject,
                                        MoeMessages messages) {
  HP_TRY(const MoeSizes s, sizes_of(subject, team->ranks()));
  const MoeCounts counts = count_choices(s, *subject.router);
  BaselineParts parts;
  const std::vector<std::int64_t> rows = {subject.tokens, subject.hidden};
  const std::vector<std::int64_t> up = {subject.experts, subject.hidden, subject.inter};
  for (const char* name : {"x", "y"}) parts.tensors[name] = {subject.dtype, rows, {}};
  for (const char* name : {"w1", "w3"}) parts.tensors[name] = {subject.dtype, up, {}};
  parts.tensors["w2"] = {subject.dtype, {subject.experts, subject.inter, subject.hidden}, {}};
  parts.tensors["router"] = {DType::F32, {subject.tokens, subject.experts}, {}};
  for (int rank = 0; rank < team->ranks(); ++rank) {
    const auto current = team->member(rank).device.make_current();
    if (!current.ok()) return cuda::to_diag(current.error());
    HP_REQUIRE_OK(add_rank(team->member(rank), s, layout_of(s, counts, rank, messages), parts));
  }
  return std::make_unique<Baseline>(team, std::move(parts));
}

}  // namespace

Checked<std::unique_ptr<Baseline>> make_sorted_moe_baseline(const std::shared_ptr<Team>& team,
                                                            const Subject& subject) {
  return make(team, subject, MoeMessages::OfRanks);
}

Checked<std::unique_ptr<Baseline>> make_direct_moe_baseline(const std::shared_ptr<Team>& team,
                                                            const Subject& subject) {
  return make(team, subject, MoeMessages::OfExperts);
}

}  // namespace harpe::library
