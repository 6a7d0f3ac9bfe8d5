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

// One rank's launches of a plan as a graph that is launched in streams of callers. Homes whose
// address is in no table in memory can be bound: the graph then works on the caller's tensors. If
// no other rank accesses the home, its tensor may lie anywhere; else the tensors must lie at the
// same place of the group's memory for tensors on all ranks, so that each rank knows the others'
// addresses. Other data is copied between tensors and homes in the arena, before and after the
// graph.
class CudaRankExecutable final : public RankExecutable {
 public:
  // Collective. Requires: the plan is for the group's ranks, and equal on all of them. Errors:
  // X0xx, G0xx not supported on GPUs; G008, G073 memory; N010, N017.
  [[nodiscard]] static Checked<std::unique_ptr<CudaRankExecutable>> make(
      const Plan& plan, std::shared_ptr<GroupState> group);
  CudaRankExecutable(const CudaRankExecutable&) = delete;
  CudaRankExecutable& operator=(const CudaRankExecutable&) = delete;
  ~CudaRankExecutable() override;

  [[nodiscard]] const std::vector<LocalHome>& homes() const override { return homes_; }
  [[nodiscard]] Result<Ok, LaunchFailure> launch(std::span<const TensorView> tensors,
                                                 void* stream) override;
  [[nodiscard]] ExecutableCounts counts() const override { return counts_; }
  [[nodiscard]] Result<std::vector<std::shared_ptr<std::byte>>, LaunchFailure> take_results(
      void* stream) override;

  // Whether an execution of this rank has failed, as far as the host can tell without waiting.
  [[nodiscard]] bool has_failed() const;
  // The failure. Requires: has_failed().
  [[nodiscard]] LaunchFailure explain() const;
  // Restores the state after `make`. Requires: no rank runs or begins an execution. Errors: G005,
  // G008.
  [[nodiscard]] Checked<Ok> reset();

  // Ends the waits of its executions, present and later ones. If the driver fails, limits end them.
  [[nodiscard]] Result<Ok, CudaError> give_up() const { return program_->give_up(); }

  // Which tensors home number `home` can be bound to, tensors in the group's memory included.
  enum class Bindable : std::uint8_t { None, InHeap, Anywhere };
  [[nodiscard]] Bindable bindable(std::size_t home) const { return bindable_[home]; }
  [[nodiscard]] std::int64_t signal_bytes() const { return page().memory().bytes(); }

 private:
  // How a launch uses a home.
  struct Use {
    bool is_copied = false;
    HomeCopy copy{};
  };
  // Another rank's home that this rank's graph accesses.
  struct PeerHome {
    std::size_t home = 0;  // index into homes_
    int rank = 0;
    AllocId alloc{};
  };

  CudaRankExecutable(std::shared_ptr<GroupState> group, std::unique_ptr<Prepared> prepared);
  // Makes the program and its graph. Errors: those of preparing launches; G005, G008.
  [[nodiscard]] Checked<Ok> capture();
  // The same with arenas `shift` bytes higher; sets `program_`.
  [[nodiscard]] Checked<CapturedGraph> capture_at(std::int64_t shift);
  void find_peer_homes();
  // This rank's homes, then the others'; empty for homes that must stay.
  [[nodiscard]] std::vector<AddressRange> movable_homes() const;
  [[nodiscard]] AddressRange movable_range(AllocId home) const;
  [[nodiscard]] AddressRange range_in_arena(AllocId home) const;
  // Collective: finds the homes that tensors in the heap can be bound to. Errors: N010, N015.
  [[nodiscard]] Checked<Ok> agree_on_homes();
  [[nodiscard]] SignalPage& page() const { return prepared_->peers.page(group_->rank()); }

  // Lays out the outputs that tensors in the heap can be bound to; equal on all ranks.
  void lay_out_results();
  // Determines where homes are in this launch, and the copies of their data. Errors: I311.
  [[nodiscard]] Checked<Ok> place(std::span<const TensorView> tensors);
  [[nodiscard]] Checked<Ok> place(std::size_t home, const TensorView& tensor);
  [[nodiscard]] bool bind(std::size_t home, const TensorView& tensor);
  [[nodiscard]] Checked<Ok> check_apart(std::span<const TensorView> tensors) const;
  [[nodiscard]] Checked<const Graph*> find_graph(std::span<const TensorView> tensors);
  [[nodiscard]] Result<Ok, CudaError> order(std::span<const TensorView> tensors, const Graph& graph,
                                            CUstream stream);
  // As part of the caller's graph: the caller determines the order of its runs.
  [[nodiscard]] Result<Ok, CudaError> add_to_capture(std::span<const TensorView> tensors,
                                                     CUstream stream);
  [[nodiscard]] Result<Ok, CudaError> order_copies(std::span<const TensorView> tensors,
                                                   CopyDirection direction, CUstream stream);

  std::shared_ptr<GroupState> group_;
  std::shared_ptr<Arena> tensors_;  // the group's memory for tensors
  std::uint32_t number_ = 0;        // among the group's executables
  std::unique_ptr<Prepared> prepared_;
  std::vector<LocalHome> homes_;
  std::vector<PeerHome> peer_homes_;
  std::vector<std::int64_t> largest_;  // by home: its bytes on the rank with the largest part
  std::optional<RankProgram> program_;
  std::optional<Bindings> bindings_;
  std::vector<Bindable> bindable_;          // by home
  std::vector<AddressRange> range_;         // in arenas, of homes_ and peer_homes_; empty: stays
  std::vector<DeviceAddress> addresses_{};  // of this launch, likewise
  std::uint64_t places_ = 0;                // hash of the places in the heap of this launch
  std::vector<Use> uses_{};                 // likewise, by home
  // By home: where each output begins in one piece of the group's memory, or -1.
  std::vector<std::int64_t> result_offsets_{};
  std::int64_t result_bytes_ = 0;
  ExecutableCounts counts_;
};

}  // namespace harpe::cuda
