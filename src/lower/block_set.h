#pragma once

#include <cstdint>
#include <unordered_map>

#include "ir/blocks.h"

namespace harpe {

// A set of a buffer's blocks, mostly in runs: 64 consecutive blocks share a machine word.
class BlockSet {
 public:
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] bool contains(BlockId block) const {
    const auto word = words_.find(block >> kShift);
    return word != words_.end() && (word->second & bit_of(block)) != 0;
  }
  void set(BlockId block, bool contained) {
    std::uint64_t& word = words_[block >> kShift];
    if (((word & bit_of(block)) != 0) == contained) return;
    word ^= bit_of(block);
    size_ += contained ? 1 : -1;
  }

 private:
  static constexpr int kShift = 6;
  static std::uint64_t bit_of(BlockId block) {
    return std::uint64_t{1} << (static_cast<std::uint64_t>(block) & ((1U << kShift) - 1));
  }

  std::unordered_map<BlockId, std::uint64_t> words_;  // by block number / 64
  std::int64_t size_ = 0;
};

}  // namespace harpe
