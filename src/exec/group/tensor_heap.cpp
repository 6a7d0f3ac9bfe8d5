#include "exec/group/tensor_heap.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "support/check.h"
#include "support/round_up.h"

namespace harpe {

TensorHeap::TensorHeap(std::int64_t bytes) : bytes_(bytes / kTensorAlignment * kTensorAlignment) {
  if (bytes_ > 0) free_.emplace(0, bytes_);
}

std::optional<std::int64_t> TensorHeap::take(std::int64_t bytes) {
  HP_CHECK(bytes > 0, "a piece of memory has bytes");
  const std::scoped_lock lock(mutex_);
  if (bytes > bytes_) return std::nullopt;  // rounding up such a number may overflow
  const std::int64_t wanted = round_up(bytes, kTensorAlignment);
  const auto found =
      std::ranges::find_if(free_, [&](const auto& piece) { return piece.second >= wanted; });
  if (found == free_.end()) return std::nullopt;
  const auto [offset, length] = *found;
  free_.erase(found);
  if (length > wanted) free_.emplace(offset + wanted, length - wanted);
  taken_.emplace(offset, wanted);
  return offset;
}

void TensorHeap::give_back(std::int64_t offset) {
  const std::scoped_lock lock(mutex_);
  const auto found = taken_.find(offset);
  HP_CHECK(found != taken_.end(), "a piece that was taken");
  auto piece = free_.emplace(*found).first;
  taken_.erase(found);
  if (const auto next = std::next(piece);
      next != free_.end() && piece->first + piece->second == next->first) {
    piece->second += next->second;
    free_.erase(next);
  }
  if (piece == free_.begin()) return;
  if (const auto before = std::prev(piece); before->first + before->second == piece->first) {
    before->second += piece->second;
    free_.erase(piece);
  }
}

std::int64_t TensorHeap::taken() const {
  const std::scoped_lock lock(mutex_);
  std::int64_t bytes = 0;
  for (const auto& [offset, length] : taken_) bytes += length;
  return bytes;
}

std::int64_t TensorHeap::longest() const {
  const std::scoped_lock lock(mutex_);
  std::int64_t bytes = 0;
  for (const auto& [offset, length] : free_) bytes = std::max(bytes, length);
  return bytes;
}

Checked<std::shared_ptr<std::byte>> allocate_tensor(const std::shared_ptr<TensorHeap>& heap,
                                                    const std::shared_ptr<const void>& memory,
                                                    std::byte* begin, std::int64_t bytes) {
  const std::optional<std::int64_t> offset = bytes > 0 ? heap->take(bytes) : std::nullopt;
  if (offset) {
    return std::shared_ptr<std::byte>(
        begin + *offset, [heap, memory, offset](std::byte*) { heap->give_back(*offset); });
  }
  const std::int64_t longest = heap->longest();
  const std::string wanted = longest > 0
                                 ? "1 to " + std::to_string(longest) + ", the longest free piece"
                                 : std::string("0, as there is no free piece");
  return make_diag(
      DiagCode::I311,
      {{"argument", "bytes"},
       {"wanted", wanted + " of the group's memory for tensors (" + std::to_string(heap->taken()) +
                      " of its " + std::to_string(heap->bytes()) +
                      " bytes are taken; free tensors, or join with more)"},
       {"found", std::to_string(bytes)}});
}

}  // namespace harpe
