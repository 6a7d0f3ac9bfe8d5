#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "exec/actions/view.h"
#include "exec/cpu/launch_steps.h"
#include "exec/cpu/prepare_steps.h"
#include "exec/group/local_homes.h"
#include "exec/group/segments.h"

namespace harpe::cpu {

// Where the homes of a group's ranks lie that other ranks access: in their arenas, or in tensors of
// the group's heap, which may change from execution to execution. A rank publishes the places
// before its Entry raises its signals; no other rank accesses its homes before that, or after its
// Exit.
class PeerHomes {
 public:
  // Collective. `tensors`: every rank's memory for tensors. Errors: those of Segments::make.
  [[nodiscard]] static Checked<PeerHomes> make(const Plan& plan, const Blocks& blocks,
                                               const actions::Bases& bases,
                                               std::shared_ptr<const Segments> tensors,
                                               transport::Exchange& exchange);

  // Collects the addresses in this rank's steps that point into homes of other ranks. Requires: all
  // homes are in arenas; `work` does not move.
  void find_fields(StepWork& work);

  // Offset of a tensor of this rank in the memory that peers access; none if it lies elsewhere.
  [[nodiscard]] std::optional<std::int64_t> find_tensor(const LocalHome& home,
                                                        const TensorView& tensor) const;
  // Publishes the place of this rank's home number `home`; none: in the arena.
  void publish(std::size_t home, std::optional<std::int64_t> tensor);
  // Points the step at the current places of other ranks' homes. Requires: the step's waits are
  // over.
  void lead(StepPlace step) const;

 private:
  struct Home {
    int rank = 0;
    std::size_t index = 0;  // among the rank's homes
    std::byte* in_arena = nullptr;
    std::int64_t bytes = 0;
  };
  struct Field {
    std::size_t home = 0;  // of homes_
    void* at = nullptr;
    std::int64_t offset = 0;  // bytes from the home's begin
  };

  PeerHomes(std::shared_ptr<const Segments> tensors, Segments places, int rank)
      : tensors_(std::move(tensors)), places_(std::move(places)), rank_(rank) {}
  [[nodiscard]] std::int64_t& word(int rank, std::size_t home) const;

  std::shared_ptr<const Segments> tensors_;
  Segments places_;  // per home: 0, or 1 + offset in the tensors' memory
  int rank_;
  std::vector<Home> homes_ = {};                              // of other ranks
  std::vector<std::vector<std::vector<Field>>> fields_ = {};  // by queue and position
};

}  // namespace harpe::cpu
