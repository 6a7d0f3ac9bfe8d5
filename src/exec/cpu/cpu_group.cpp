#include "exec/cpu/cpu_group.h"

#include <algorithm>
#include <cstring>

#include "exec/actions/occupancy.h"
#include "exec/cpu/checks.h"
#include "exec/cpu/rank_executable.h"
#include "exec/named_kernels.h"
#include "plan/text.h"
#include "support/hash.h"

namespace harpe {
namespace {

using cpu::CpuRankExecutable;
using cpu::GroupState;

class CpuGroup final : public RankGroup {
 public:
  explicit CpuGroup(std::shared_ptr<GroupState> state) : state_(std::move(state)) {}

  [[nodiscard]] Checked<std::unique_ptr<RankExecutable>> make(const Plan& plan) override {
    const Checked<Ok> checked = check(plan);
    HP_REQUIRE_OK(agree(exchange(), checked.ok() ? std::nullopt : std::optional(checked.error())));
    HP_REQUIRE_OK(compare(exchange(), hash_text(print_plan(plan))));
    HP_TRY(const Blocks blocks, Blocks::make(plan.program, plan.mesh, plan.form));
    HP_REQUIRE_OK(cpu::grow(*state_, cpu::rank_memory_bytes(plan, blocks)));
    HP_TRY(std::unique_ptr<CpuRankExecutable> made, CpuRankExecutable::make(plan, state_));
    return std::unique_ptr<RankExecutable>(std::move(made));
  }

  [[nodiscard]] std::optional<LaunchFailure> check() override { return state_->failure; }

  [[nodiscard]] Checked<Ok> reset() override {
    // No rank takes a step now, and none begins again before all are clear.
    HP_REQUIRE_OK(agree(exchange(), std::nullopt));
    for (CpuRankExecutable* const executable : state_->live) executable->clear();
    state_->board.clear();
    state_->failure.reset();
    return agree(exchange(), std::nullopt);
  }

  [[nodiscard]] GroupCounts counts() const override {
    GroupCounts counts{.heap_bytes = state_->arenas->bytes() + state_->heap->bytes(),
                       .tensor_bytes = state_->heap->taken(),
                       .executables = std::ssize(state_->live)};
    for (const CpuRankExecutable* const each : state_->live) {
      counts.heap_bytes += each->signal_bytes();
    }
    return counts;
  }

  [[nodiscard]] Checked<std::shared_ptr<std::byte>> allocate(std::int64_t bytes) override {
    return state_->allocate(bytes);
  }

 private:
  [[nodiscard]] transport::Exchange& exchange() const { return *state_->request.exchange; }

  [[nodiscard]] Checked<Ok> check(const Plan& plan) const {
    if (plan.mesh.ranks() != state_->ranks()) {
      return make_diag(DiagCode::I311,
                       {{"argument", "plan"},
                        {"wanted", "for the group's " + std::to_string(state_->ranks()) + " ranks"},
                        {"found", "for " + std::to_string(plan.mesh.ranks())}});
    }
    HP_REQUIRE_OK(cpu::check_size(plan, plan.mesh.ranks()));
    HP_REQUIRE_OK(check_kernels(plan, cpu_offers()));
    return actions::check_buffers(plan.program);
  }

  std::shared_ptr<GroupState> state_;
};

}  // namespace

namespace {

// Every rank gets as much as the largest request.
Checked<Ok> make_heap(GroupState& state) {
  transport::Exchange& exchange = *state.request.exchange;
  const std::int64_t own = state.request.tensor_bytes;
  HP_TRY(const auto wishes, exchange.all_gather(std::as_bytes(std::span(&own, 1))));
  std::int64_t most = 0;
  for (std::size_t rank = 0; rank < wishes.size(); ++rank) {
    std::int64_t wish = 0;
    if (wishes[rank].size() != sizeof(wish)) return make_diag(DiagCode::N015, {{"rank", rank}});
    std::memcpy(&wish, wishes[rank].data(), sizeof(wish));
    most = std::max(most, wish);
  }
  state.heap = std::make_shared<TensorHeap>(most);
  if (state.heap->bytes() == 0) return Ok{};
  HP_TRY(Segments tensors, Segments::make(state.heap->bytes(), exchange));
  state.tensors = std::make_shared<Segments>(std::move(tensors));
  return Ok{};
}

}  // namespace

Checked<std::unique_ptr<RankGroup>> join_cpu_group(const GroupRequest& request) {
  HP_TRY(GroupBoard board, GroupBoard::make(*request.exchange));
  auto state = std::make_shared<GroupState>(request, std::move(board));
  HP_REQUIRE_OK(cpu::grow(*state, request.heap_bytes));
  HP_REQUIRE_OK(make_heap(*state));
  return std::unique_ptr<RankGroup>(std::make_unique<CpuGroup>(std::move(state)));
}

}  // namespace harpe
