#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "transport/exchange.h"

namespace harpe::cuda {

// Rendezvous of ranks that are threads of one process.
class MeetingPlace {
 public:
  explicit MeetingPlace(int ranks) : given_(static_cast<std::size_t>(ranks)) {}

  [[nodiscard]] int ranks() const { return static_cast<int>(given_.size()); }
  // Errors: N010 a rank has left.
  [[nodiscard]] Checked<std::vector<transport::Blob>> all_gather(int rank,
                                                                 std::span<const std::byte> own);
  // A rank leaves for good; no rank waits for it any more.
  void leave();

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<transport::Blob> given_;
  std::vector<transport::Blob> taken_;  // of the last round
  int waiting_ = 0;
  std::int64_t round_ = 0;
  bool is_left_ = false;
};

[[nodiscard]] std::unique_ptr<transport::Exchange> exchange_at(MeetingPlace& place, int rank);

}  // namespace harpe::cuda
