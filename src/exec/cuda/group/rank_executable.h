#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "exec/cuda/executor/prepared.h"
#include "exec/cuda/group/bindings.h"
#include "exec/cuda/group/group_state.h"
#include "exec/cuda/group/home_copies.h"
#include "exec/group/group.h"

namespace harpe::cuda {

// One rank's launches of a plan as a graph that is launched in streams of callers. Homes that
// nobody else and no table in memory names are bound: the graph works on the caller's tensors. Data
// of others is copied between tensors and homes in the arena, around the graph.
class CudaRankExecutable final : public RankExecutable {
 public:
  // Collective. Requires: the plan is of the group's ranks, and the same on all of them. Errors:
  // X0xx, G0xx what GPUs cannot do; G008, G073 memory; N010, N017.
  [[nodiscard]] static Checked<std::unique_ptr<CudaRankExecutable>> make(
      const Plan& plan, std::shared_ptr<GroupState> group);
  CudaRankExecutable(const CudaRankExecutable&) = delete;
  CudaRankExecutable& operator=(const CudaRankExecutable&) = delete;
  ~CudaRankExecutable() override;

  [[nodiscard]] const std::vector<LocalHome>& homes() const override { return homes_; }
  [[nodiscard]] Result<Ok, LaunchFailure> launch(std::span<const TensorView> tensors,
                                                 void* stream) override;
  [[nodiscard]] ExecutableCounts counts() const override { return counts_; }

  // Whether an execution of this rank has failed, as far as the host can see without waiting.
  [[nodiscard]] bool has_failed() const;
  // Why. Requires: has_failed().
  [[nodiscard]] LaunchFailure explain() const;
  // As after `make`. Requires: no rank has an execution under way, or begins one. Errors: G005,
  // G008.
  [[nodiscard]] Checked<Ok> reset();

  // Of homes() at that index: whether tensors can be bound.
  [[nodiscard]] bool may_bind(std::size_t home) const { return range_[home].begin != 0; }
  [[nodiscard]] std::int64_t signal_bytes() const { return page().memory().bytes(); }

 private:
  // What a launch does with a home.
  struct Use {
    bool is_copied = false;
    HomeCopy copy{};
  };

  CudaRankExecutable(std::shared_ptr<GroupState> group, std::unique_ptr<Prepared> prepared);
  // The program and its graph. Errors: those of preparing launches; G005, G008.
  [[nodiscard]] Checked<Ok> capture();
  // The same with arenas that lie so many bytes further on; the program is `program_`.
  [[nodiscard]] Checked<CapturedGraph> capture_at(std::int64_t shift);
  [[nodiscard]] std::vector<AddressRange> movable_homes() const;
  [[nodiscard]] AddressRange range_in_arena(const LocalHome& home) const;
  [[nodiscard]] SignalPage& page() const { return prepared_->peers.page(group_->rank()); }

  // Where homes are in this launch, and how their data comes there. Errors: I311.
  [[nodiscard]] Checked<Ok> place(std::span<const TensorView> tensors);
  [[nodiscard]] Checked<Ok> place(std::size_t home, const TensorView& tensor);
  [[nodiscard]] Checked<Ok> check_apart(std::span<const TensorView> tensors) const;
  [[nodiscard]] Checked<const Graph*> find_graph(std::span<const TensorView> tensors);
  [[nodiscard]] Result<Ok, CudaError> order(std::span<const TensorView> tensors, const Graph& graph,
                                            CUstream stream);
  // As a part of a graph of the caller's: its runs are in the caller's order.
  [[nodiscard]] Result<Ok, CudaError> add_to_capture(std::span<const TensorView> tensors,
                                                     CUstream stream);
  [[nodiscard]] Result<Ok, CudaError> order_copies(std::span<const TensorView> tensors,
                                                   CopyDirection direction, CUstream stream);

  std::shared_ptr<GroupState> group_;
  std::unique_ptr<Prepared> prepared_;
  std::vector<LocalHome> homes_;
  std::optional<RankProgram> program_;
  std::optional<Bindings> bindings_;
  std::vector<AddressRange> range_;         // in the arena, of homes that may be bound; else empty
  std::vector<DeviceAddress> addresses_{};  // of this launch, by home
  std::vector<Use> uses_{};                 // likewise
  ExecutableCounts counts_;
};

}  // namespace harpe::cuda
