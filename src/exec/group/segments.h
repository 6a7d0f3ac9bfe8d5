#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "transport/exchange.h"
#include "transport/shared_memory.h"

namespace harpe {

// Memory of every process of this host (or thread that exchanges like one), equally large for each,
// that all of them map. It lives until the last of them releases it.
class Segments {
 public:
  Segments() = default;
  // Zeroed; pages are committed on first touch. Collective over the exchange; processes that are
  // not near neither share nor map memory. Errors: N002, N010, N017, X018.
  [[nodiscard]] static Checked<Segments> make(
      std::int64_t bytes, transport::Exchange& exchange,
      const std::function<bool(int)>& is_near = [](int) { return true; });

  // Empty if the process is not near.
  [[nodiscard]] std::span<std::byte> of(int process) const {
    return of_process_[static_cast<std::size_t>(process)];
  }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  [[nodiscard]] Checked<Ok> open_others(const std::vector<transport::Blob>& cards, int own,
                                        const std::function<bool(int)>& is_near);

  std::int64_t bytes_ = 0;
  std::vector<transport::SharedMemory> shared_;
  std::vector<std::span<std::byte>> of_process_;
};

}  // namespace harpe
