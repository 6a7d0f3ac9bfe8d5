#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exec/actions/occupancy.h"
#include "exec/actions/view.h"
#include "exec/cpu/marking.h"
#include "exec/cpu/peer_homes.h"
#include "exec/cpu/runner.h"
#include "exec/group/group.h"
#include "exec/group/group_board.h"
#include "exec/group/segments.h"
#include "exec/group/tensor_heap.h"
#include "ir/blocks.h"

namespace harpe::cpu {

class CpuRankExecutable;

// What the executables of one rank share.
struct GroupState {
  GroupState(GroupRequest given, GroupBoard made)
      : request(std::move(given)), board(std::move(made)) {}

  GroupRequest request;
  GroupBoard board;
  std::shared_ptr<Segments> arenas = {};      // of all ranks; plans use them in turn
  std::shared_ptr<Segments> tensors = {};     // likewise, for callers' tensors; null: no bytes
  std::shared_ptr<TensorHeap> heap = {};      // allocator of this rank's part
  std::vector<CpuRankExecutable*> live = {};  // executables
  std::optional<LaunchFailure> failure = {};  // what ended their executions

  [[nodiscard]] int rank() const { return request.exchange->rank(); }
  [[nodiscard]] int ranks() const { return request.exchange->ranks(); }
  // From this rank's memory for tensors. Errors: those of allocate_tensor.
  [[nodiscard]] Checked<std::shared_ptr<std::byte>> allocate(std::int64_t bytes) const;
};

// Collective: arenas of at least `bytes` for plans made from now on. Errors: those of
// Segments::make.
[[nodiscard]] Checked<Ok> grow(GroupState& group, std::int64_t bytes);

// Signals of a plan's ranks in pages that all of them map.
class GroupSignals final : public Outside {
 public:
  // `homes`, of the same plan, or null, must outlive this.
  GroupSignals(Segments pages, int rank, const PeerHomes* homes)
      : pages_(std::move(pages)), rank_(rank), homes_(homes) {}

  void begin(StepPlace step) override {
    if (homes_ != nullptr) homes_->lead(step);
  }
  [[nodiscard]] std::int64_t read(std::int32_t flag) const override;
  void raise(const Outgoing& flag, std::int64_t epoch) override;
  // Never called: all ranks are on one host.
  [[nodiscard]] bool post(TaskId task, const std::vector<Outgoing>& behind,
                          std::int64_t epoch) override;
  void clear();  // this rank's page
  [[nodiscard]] std::int64_t bytes() const { return pages_.bytes(); }

 private:
  [[nodiscard]] std::span<std::uint32_t> page(int rank) const;

  Segments pages_;
  int rank_;
  const PeerHomes* homes_;
};

// One rank's tasks, on memory of the group and tensors of the caller.
class CpuRankExecutable final : public RankExecutable {
 public:
  // Collective. Requires: the group can run the plan. Errors: N002, N010, N017, X018; those of
  // preparing tasks; F1xx of Blocks::make.
  [[nodiscard]] static Checked<std::unique_ptr<CpuRankExecutable>> make(
      const Plan& plan, std::shared_ptr<GroupState> group);
  CpuRankExecutable(const CpuRankExecutable&) = delete;
  CpuRankExecutable& operator=(const CpuRankExecutable&) = delete;
  ~CpuRankExecutable() override;

  [[nodiscard]] const std::vector<LocalHome>& homes() const override { return homes_; }
  [[nodiscard]] Result<Ok, LaunchFailure> launch(std::span<const TensorView> tensors,
                                                 void* stream) override;
  [[nodiscard]] ExecutableCounts counts() const override { return counts_; }
  [[nodiscard]] Result<std::vector<std::shared_ptr<std::byte>>, LaunchFailure> take_results(
      void* stream) override;

  // The parts of a launch, for tests that take the steps of several ranks in any order.
  void begin(std::span<const TensorView> tensors);
  [[nodiscard]] Marking& marking() { return *marking_; }
  void end(std::span<const TensorView> tensors);
  // Resets to the state after `make`.
  void clear();

  [[nodiscard]] std::int64_t signal_bytes() const { return signals_->bytes(); }

 private:
  // A field of a task with an address within a home.
  struct Field {
    void* at = nullptr;
    std::int64_t offset = 0;  // bytes from the home's begin
  };
  // A home and the tasks' fields that point into it.
  struct Bound {
    std::vector<Field> fields;
    std::vector<std::int64_t> strides;  // of its dense tensor, elements
    std::byte* in_arena = nullptr;
    std::byte* now = nullptr;  // where the fields point
  };

  CpuRankExecutable(const Plan& plan, Blocks blocks, std::shared_ptr<GroupState> group);
  void place();
  [[nodiscard]] Checked<Ok> prepare(const launch::LaunchPlan& launches, LaunchSteps steps,
                                    Segments signals);
  void find_fields(StepWork& work);
  void bind(Bound& bound, std::byte* to);
  [[nodiscard]] bool can_bind(const LocalHome& home, const TensorView& tensor) const;
  void copy(std::size_t home, const TensorView& tensor, bool is_input);
  [[nodiscard]] RunOutcome run();
  [[nodiscard]] LaunchFailure fail(const RunOutcome& outcome);

  Plan plan_;
  Blocks blocks_;
  processes::Partition partition_;
  std::shared_ptr<GroupState> group_;
  std::shared_ptr<Segments> arenas_;
  std::uint32_t number_;  // among the group's executables
  std::int64_t numbers_bytes_;
  actions::Bases bases_;
  std::vector<std::byte*> numbers_;  // by rank, for Occupancy
  std::optional<actions::Occupancy> occupancy_;
  std::vector<std::unique_ptr<std::byte[]>> scratch_;
  std::vector<LocalHome> homes_;
  std::vector<Bound> bound_;             // by home
  std::optional<PeerHomes> peer_homes_;  // if the group has memory for tensors
  std::unique_ptr<GroupSignals> signals_;
  std::optional<Marking> marking_;
  ExecutableCounts counts_;
};

// Per rank: the arena, and behind it the numbers of ragged axes.
[[nodiscard]] std::int64_t rank_memory_bytes(const Plan& plan, const Blocks& blocks);

}  // namespace harpe::cpu
