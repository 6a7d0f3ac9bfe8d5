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

// Where the ranks of a group have homes that others reach: in their arenas, or in tensors of the
// group's heap, which may change from execution to execution. A rank says so before its Entry; no
// other rank reaches its homes before that, nor behind its Exit.
class PeerHomes {
 public:
  // Collective. `tensors`: every rank's memory for tensors. Errors: Segments::make's.
  [[nodiscard]] static Checked<PeerHomes> make(const Plan& plan, const Blocks& blocks,
                                               const actions::Bases& bases,
                                               std::shared_ptr<const Segments> tensors,
                                               transport::Exchange& exchange);

  // Notes what of this rank's steps holds addresses in homes of others. Requires: all homes are in
  // arenas; `work` stays where it is.
  void find_fields(StepWork& work);

  // Where a tensor of this rank's lies in the memory that peers reach; none: not there.
  [[nodiscard]] std::optional<std::int64_t> find_tensor(const LocalHome& home,
                                                        const TensorView& tensor) const;
  // This rank's home of that index is there now; none: in the arena.
  void publish(std::size_t home, std::optional<std::int64_t> tensor);
  // Leads the step to where homes of others are now. Requires: what the step waits for is over.
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
  Segments places_;  // per home 0, or 1 more than where it lies among tensors
  int rank_;
  std::vector<Home> homes_ = {};                              // of other ranks
  std::vector<std::vector<std::vector<Field>>> fields_ = {};  // by queue and position
};

}  // namespace harpe::cpu
