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

// The address of a byte in a process's windows, as puts use it.
struct WindowPlace {
  int process = 0;
  std::int64_t offset = 0;  // from the begin of its first window
};

// Sizes in bytes of the parts of a window besides the arena; number of signals beside windows.
struct WindowSizes {
  std::int64_t numbers = 0;  // of a rank
  std::int64_t bounce = 0;   // of a rank
  std::int32_t signals = 0;  // of a process
};

// The memory of all ranks as this process addresses it. A rank has a *window*: its arena, so that a
// peer's address is its base plus an offset (commir.md D15), then the numbers of Occupancy, then
// room in which data is rounded before it goes to other hosts. A process's windows are contiguous,
// behind a page of signals that other processes set. Windows of this host are mapped memory.
// Windows of other hosts are reserved addresses without memory, except in process 0, where other
// hosts put their part of the outputs after a run (*mirrors*).
class Windows {
 public:
  // Errors, with several processes: N002, N010.
  [[nodiscard]] static Checked<Windows> make(const Plan& plan,
                                             const processes::Partition& partition,
                                             const WindowSizes& sizes,
                                             transport::Exchange* exchange);

  [[nodiscard]] const actions::Bases& bases() const { return bases_; }
  [[nodiscard]] const std::vector<std::byte*>& numbers() const { return numbers_; }
  // Per rank, as `numbers`; only this process's are mapped.
  [[nodiscard]] std::vector<std::byte*> bounces() const;
  [[nodiscard]] std::int64_t arena_bytes() const { return arena_bytes_; }

  // What others may write here; and the windows, or the mirror, of another process.
  [[nodiscard]] std::span<std::byte> own() const { return windows_of(partition_.process); }
  [[nodiscard]] std::span<std::byte> windows_of(int process) const;
  // Requires: the process is on this host.
  [[nodiscard]] std::span<std::uint32_t> signals_of(int process) const;
  // None outside all windows.
  [[nodiscard]] std::optional<WindowPlace> find(const std::byte* address) const;

  // Fills this process's slots, and its homes that are not inputs, with 0xff, a NaN in every
  // floating type, so that what a plan fails to write shows in its results.
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
