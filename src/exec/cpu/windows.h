#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "exec/actions/view.h"
#include "exec/cpu/mapping.h"
#include "exec/group/segments.h"
#include "exec/processes/partition.h"
#include "plan/plan.h"
#include "transport/exchange.h"

namespace harpe::cpu {

// A byte of a process's windows: what puts name.
struct WindowPlace {
  int process = 0;
  std::int64_t offset = 0;  // from its first window's begin
};

// What windows hold besides arenas, in bytes, and pages besides windows.
struct WindowSizes {
  std::int64_t numbers = 0;  // of a rank
  std::int64_t bounce = 0;   // of a rank
  std::int32_t signals = 0;  // of a process
};

// The memory of all ranks as this process sees it. A rank has a *window*: its arena, so that a
// peer's address is its base plus an offset (commir.md D15), behind it the numbers that Occupancy
// keeps, and room where data is rounded on its way to other hosts. A process's windows lie one
// behind the other, behind a page of signals that other processes set. Those of this process and of
// others on its host are memory; those of other hosts are addresses to reckon with, which nothing
// is behind, except in process 0: there other hosts put what they have of the outputs once a run is
// over (*mirrors*).
class Windows {
 public:
  // Errors, where there are other processes: N002, N010.
  [[nodiscard]] static Checked<Windows> make(const Plan& plan,
                                             const processes::Partition& partition,
                                             const WindowSizes& sizes,
                                             transport::Exchange* exchange);

  [[nodiscard]] const actions::Bases& bases() const { return bases_; }
  [[nodiscard]] const std::vector<std::byte*>& numbers() const { return numbers_; }
  // Per rank, as `numbers`; of this process alone there is memory.
  [[nodiscard]] std::vector<std::byte*> bounces() const;
  [[nodiscard]] std::int64_t arena_bytes() const { return arena_bytes_; }

  // What others may write here, and where they write of other hosts' outputs here.
  [[nodiscard]] std::span<std::byte> own() const { return windows_of(partition_.process); }
  [[nodiscard]] std::span<std::byte> windows_of(int process) const;
  // Requires: the process is on this host.
  [[nodiscard]] std::span<std::uint32_t> signals_of(int process) const;
  // None outside of all windows.
  [[nodiscard]] std::optional<WindowPlace> find(const std::byte* address) const;

  // Of this process. Fills with 0xff, a NaN in every floating type, whatever no caller has put
  // there: all slots, and the homes that are not inputs. What a plan fails to write is then seen in
  // its results.
  void poison(const Plan& plan) const;
  void clear_numbers() const;

 private:
  Windows(const processes::Partition& partition, const WindowSizes& sizes)
      : partition_(partition), sizes_(sizes) {}
  [[nodiscard]] Checked<Ok> share(transport::Exchange& exchange);
  void place();

  processes::Partition partition_;
  std::int64_t arena_bytes_ = 0;
  WindowSizes sizes_;
  std::int64_t window_bytes_ = 0;
  std::int64_t signals_bytes_ = 0;
  std::vector<std::byte*> segments_;  // per process: signals, then windows
  Segments shared_;
  std::vector<Mapping> mapped_;
  actions::Bases bases_;
  std::vector<std::byte*> numbers_;
};

}  // namespace harpe::cpu
