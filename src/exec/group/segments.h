#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "transport/exchange.h"
#include "transport/shared_memory.h"

namespace harpe {

// Memory of every process (or thread that exchanges like one) of this host, equally much of each,
// which all of them reach. It is there until the last of them lets go of it.
class Segments {
 public:
  Segments() = default;
  // Zeros; memory is taken as it is touched. Called by all who exchange; those that are not near
  // give and open none. Errors: N002, N010, N017, X018.
  [[nodiscard]] static Checked<Segments> make(
      std::int64_t bytes, transport::Exchange& exchange,
      const std::function<bool(int)>& is_near = [](int) { return true; });

  // Empty where it is not near.
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
