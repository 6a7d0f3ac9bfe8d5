#include "exec/cpu/rank_executable.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <span>

#include "exec/actions/addresses.h"
#include "exec/actions/rows.h"
#include "exec/cpu/faults.h"
#include "exec/cpu/launch_target.h"
#include "exec/cpu/rank_runner.h"
#include "support/check.h"
#include "support/round_up.h"

namespace harpe::cpu {
namespace {

constexpr std::int64_t kLine = 64;  // cache line
// A fold's state stays in cache from one source to the next.
constexpr std::int64_t kFoldElements = std::int64_t{1} << 14;

std::vector<std::int64_t> dense_strides(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

}  // namespace

std::int64_t GroupSignals::read(std::int32_t flag) const {
  // Acquire: pairs with the release in `raise`; what precedes the raise is visible after this load.
  return std::atomic_ref(page(rank_)[static_cast<std::size_t>(flag)])
      .load(std::memory_order_acquire);
}

void GroupSignals::raise(const Outgoing& flag, std::int64_t epoch) {
  std::atomic_ref(page(flag.process)[static_cast<std::size_t>(flag.flag)])
      .store(static_cast<std::uint32_t>(epoch), std::memory_order_release);
}

bool GroupSignals::post(TaskId, const std::vector<Outgoing>&, std::int64_t) {
  HP_CHECK(false, "a group has no network");
  return false;
}

void GroupSignals::clear() {
  for (std::uint32_t& word : page(rank_)) std::atomic_ref(word).store(0, std::memory_order_relaxed);
}

std::span<std::uint32_t> GroupSignals::page(int rank) const {
  const std::span<std::byte> bytes = pages_.of(rank);
  return {reinterpret_cast<std::uint32_t*>(bytes.data()), bytes.size() / sizeof(std::uint32_t)};
}

std::int64_t rank_memory_bytes(const Plan& plan, const Blocks& blocks) {
  return round_up(arena_bytes(plan), kLine) +
         round_up(actions::Occupancy::bytes_per_rank(plan, blocks), kLine);
}

Checked<Ok> grow(GroupState& group, std::int64_t bytes) {
  if (group.arenas && group.arenas->bytes() >= bytes) return Ok{};
  HP_TRY(Segments arenas, Segments::make(bytes, *group.request.exchange));
  group.arenas = std::make_shared<Segments>(std::move(arenas));
  return Ok{};
}

CpuRankExecutable::CpuRankExecutable(const Plan& plan, Blocks blocks,
                                     std::shared_ptr<GroupState> group)
    : plan_(plan),
      blocks_(std::move(blocks)),
      partition_{.process = group->rank(),
                 .processes = group->ranks(),
                 .processes_per_host = group->ranks(),
                 .ranks_each = 1},
      group_(std::move(group)),
      arenas_(group_->arenas),
      number_(group_->board.add(plan_.program.name)),
      numbers_bytes_(actions::Occupancy::bytes_per_rank(plan_, blocks_)),
      homes_(local_homes(plan_, blocks_, RankId(group_->rank()))) {
  group_->live.push_back(this);
  place();
}

CpuRankExecutable::~CpuRankExecutable() { std::erase(group_->live, this); }

Checked<std::unique_ptr<CpuRankExecutable>> CpuRankExecutable::make(
    const Plan& plan, std::shared_ptr<GroupState> group) {
  transport::Exchange& exchange = *group->request.exchange;
  HP_TRY(Blocks blocks, Blocks::make(plan.program, plan.mesh, plan.form));
  std::unique_ptr<CpuRankExecutable> made(
      new CpuRankExecutable(plan, std::move(blocks), std::move(group)));
  HP_TRY(const launch::LaunchPlan launches, launches_of(plan, true));
  HP_TRY(LaunchSteps steps, make_steps(plan, launches));
  const std::int32_t flags = map_signals(made->plan_, steps, made->partition_).most_flags;
  HP_TRY(Segments signals,
         Segments::make(round_up(flags * static_cast<std::int64_t>(sizeof(std::uint32_t)), kLine),
                        exchange));
  if (made->group_->tensors) {
    HP_TRY(made->peer_homes_, PeerHomes::make(made->plan_, made->blocks_, made->bases_,
                                              made->group_->tensors, exchange));
  }
  const Checked<Ok> prepared = made->prepare(launches, std::move(steps), std::move(signals));
  HP_REQUIRE_OK(agree(exchange, prepared.ok() ? std::nullopt : std::optional(prepared.error())));
  return made;
}

void CpuRankExecutable::place() {
  for (int rank = 0; rank < group_->ranks(); ++rank) {
    std::byte* const arena = arenas_->of(rank).data();
    bases_.arenas.push_back(arena);
    numbers_.push_back(arena + round_up(arena_bytes(plan_), kLine));
  }
  for (const LocalHome& home : homes_) {
    Bound& bound = bound_.emplace_back();
    bound.strides = dense_strides(home.shape);
    if (!home.alloc.valid()) continue;
    bound.in_arena = bases_.address(plan_.allocs[home.alloc.index()]);
    bound.now = bound.in_arena;
  }
  occupancy_.emplace(plan_, blocks_, numbers_);
}

Checked<Ok> CpuRankExecutable::prepare(const launch::LaunchPlan& launches, LaunchSteps steps,
                                       Segments signals) {
  const actions::Scratch scratch{
      .reserve =
          [this](std::int64_t bytes) {
            scratch_.push_back(std::make_unique<std::byte[]>(static_cast<std::size_t>(bytes)));
            return scratch_.back().get();
          },
      .elements = kFoldElements};
  launch::RefLayouts layouts(plan_, blocks_);
  const actions::Setting setting{
      .plan = plan_,
      .blocks = blocks_,
      .layouts = layouts,
      .bases = bases_,
      .occupancy = *occupancy_,
      .scratch = scratch,
      .products = group_->request.uses_libraries ? Products::Libraries : Products::OwnLoops};
  HP_TRY(StepWork work, prepare_steps(setting, launches, steps, partition_));
  find_fields(work);
  if (peer_homes_) peer_homes_->find_fields(work);
  signals_ = std::make_unique<GroupSignals>(std::move(signals), group_->rank(),
                                            peer_homes_ ? &*peer_homes_ : nullptr);
  marking_.emplace(plan_, std::move(steps), std::move(work), std::nullopt, partition_,
                   signals_.get());
  return Ok{};
}

// All homes are in the arena at this point, at disjoint addresses.
void CpuRankExecutable::find_fields(StepWork& work) {
  const auto note = [&](void* field, const std::byte* value) {
    for (std::size_t i = 0; i < homes_.size(); ++i) {
      if ((!homes_[i].is_own && !peer_homes_) || !homes_[i].alloc.valid()) continue;
      const std::ptrdiff_t offset = value - bound_[i].in_arena;
      if (offset < 0 || offset >= homes_[i].bytes()) continue;
      bound_[i].fields.push_back({.at = field, .offset = offset});
    }
  };
  for (std::vector<actions::TaskWork>& queue : work) {
    for (actions::TaskWork& step : queue) actions::for_each_address(step, note);
  }
}

void CpuRankExecutable::bind(Bound& bound, std::byte* to) {
  if (bound.now == to) return;
  bound.now = to;
  for (const Field& field : bound.fields) {
    const std::byte* const address = to + field.offset;
    std::memcpy(field.at, &address, sizeof(address));
  }
}

bool CpuRankExecutable::can_bind(const LocalHome& home, const TensorView& tensor) const {
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.data);
  const auto size = static_cast<std::uintptr_t>(size_in_bytes(home.dtype));
  if (!is_dense(tensor) || address % size != 0) return false;
  return home.is_own || (peer_homes_ && peer_homes_->find_tensor(home, tensor));
}

void CpuRankExecutable::copy(std::size_t home, const TensorView& tensor, bool is_input) {
  const Bound& bound = bound_[home];
  const auto axes = static_cast<std::ptrdiff_t>(tensor.axes);
  const std::int64_t size = size_in_bytes(homes_[home].dtype);
  const actions::Rows rows(
      homes_[home].shape,
      std::vector<std::vector<std::int64_t>>{
          bound.strides, {tensor.strides.begin(), tensor.strides.begin() + axes}});
  const auto bytes = static_cast<std::size_t>(rows.length() * size);
  rows.for_each([&](const auto& walk) {
    std::byte* const in_arena = bound.in_arena + walk.offset(0) * size;
    std::byte* const outside = tensor.data + walk.offset(1) * size;
    std::memcpy(is_input ? in_arena : outside, is_input ? outside : in_arena, bytes);
  });
  counts_.copied_bytes += homes_[home].bytes();
}

void CpuRankExecutable::begin(std::span<const TensorView> tensors) {
  for (std::size_t i = 0; i < homes_.size(); ++i) {
    if (homes_[i].bytes() == 0) continue;
    const bool is_bound = can_bind(homes_[i], tensors[i]);
    bind(bound_[i], is_bound ? tensors[i].data : bound_[i].in_arena);
    if (peer_homes_ && !homes_[i].is_own) {
      peer_homes_->publish(
          i, is_bound ? peer_homes_->find_tensor(homes_[i], tensors[i]) : std::nullopt);
    }
    if (!is_bound && homes_[i].role != Role::Out) copy(i, tensors[i], true);
  }
  std::byte* const own = numbers_[static_cast<std::size_t>(group_->rank())];
  std::memset(own, 0, static_cast<std::size_t>(numbers_bytes_));
  ++counts_.launches;
  group_->board.begin(number_);
  marking_->begin(1, false);
}

void CpuRankExecutable::end(std::span<const TensorView> tensors) {
  for (std::size_t i = 0; i < homes_.size(); ++i) {
    if (homes_[i].bytes() == 0 || homes_[i].role == Role::In) continue;
    if (bound_[i].now == bound_[i].in_arena) copy(i, tensors[i], false);
  }
}

void CpuRankExecutable::clear() {
  signals_->clear();
  marking_->clear();
}

Checked<std::shared_ptr<std::byte>> GroupState::allocate(std::int64_t bytes) const {
  std::byte* const begin = tensors ? tensors->of(rank()).data() : nullptr;
  return allocate_tensor(heap, tensors, begin, bytes);
}

Result<std::vector<std::shared_ptr<std::byte>>, LaunchFailure> CpuRankExecutable::take_results(
    void* /*stream*/) {
  std::vector<std::shared_ptr<std::byte>> results(homes_.size());
  if (group_->heap->bytes() == 0) return results;
  for (std::size_t home = 0; home < homes_.size(); ++home) {
    if (homes_[home].role == Role::In || homes_[home].is_own || homes_[home].bytes() == 0) continue;
    if (auto piece = group_->allocate(homes_[home].bytes()); piece.ok()) {
      results[home] = *std::move(piece);
    }
  }
  return results;
}

Result<Ok, LaunchFailure> CpuRankExecutable::launch(std::span<const TensorView> tensors, void*) {
  HP_CHECK(tensors.size() == homes_.size(), "a tensor for each home");
  if (group_->failure) return *group_->failure;
  begin(tensors);
  const GroupRequest& request = group_->request;
  const RunOutcome outcome = run_rank(*marking_, group_->board, request.wait_limit, [&] {
    return group_->board.find_mismatch().has_value() || (request.waiting && !request.waiting());
  });
  if (!outcome.finished) return fail(outcome);
  group_->board.end();
  end(tensors);
  return Ok{};
}

LaunchFailure CpuRankExecutable::fail(const RunOutcome& outcome) {
  group_->board.stop();
  if (std::optional<Diag> mismatch = group_->board.find_mismatch(GroupBoard::kHistory)) {
    group_->failure = std::move(*mismatch);
    return *group_->failure;
  }
  FaultReport faults = collect_faults(plan_, blocks_, *marking_, outcome);
  if (const std::optional<int> gone = group_->board.find_gone()) {
    Fault lost;
    lost.kind = FaultKind::PeerLost;
    lost.rank = RankId(*gone);
    faults.insert(faults.begin(), lost);
  }
  group_->failure = make_failure(plan_, std::move(faults));
  return *group_->failure;
}

}  // namespace harpe::cpu
