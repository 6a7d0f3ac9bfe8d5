#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "support/diag.h"
#include "support/result.h"

namespace harpe {

constexpr std::int64_t kTensorAlignment = 256;

// Allocator of one rank's memory for tensors. Calls may come from any thread.
class TensorHeap {
 public:
  explicit TensorHeap(std::int64_t bytes);
  TensorHeap(const TensorHeap&) = delete;
  TensorHeap& operator=(const TensorHeap&) = delete;

  // Offset of a piece of at least `bytes`, a multiple of kTensorAlignment: the first that fits.
  // None if no piece fits. Requires: bytes > 0.
  [[nodiscard]] std::optional<std::int64_t> take(std::int64_t bytes);
  // Requires: `offset` was taken.
  void give_back(std::int64_t offset);

  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  [[nodiscard]] std::int64_t taken() const;
  // The longest free piece.
  [[nodiscard]] std::int64_t longest() const;

 private:
  std::int64_t bytes_;
  mutable std::mutex mutex_;
  std::map<std::int64_t, std::int64_t> free_;   // by offset: bytes; adjacent pieces are merged
  std::map<std::int64_t, std::int64_t> taken_;  // likewise
};

// A piece of the heap that lives until its last pointer ends, on any thread. `memory` owns the
// memory that the heap divides, which begins at `begin`. Errors: I311 bytes below 1, or more than
// the longest free piece.
[[nodiscard]] Checked<std::shared_ptr<std::byte>> allocate_tensor(
    const std::shared_ptr<TensorHeap>& heap, const std::shared_ptr<const void>& memory,
    std::byte* begin, std::int64_t bytes);

}  // namespace harpe
