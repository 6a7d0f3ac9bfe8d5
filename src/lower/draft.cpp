#include "lower/draft.h"

#include <algorithm>
#include <bit>

#include "plan/text.h"

namespace harpe {

bool is_put(const DraftTask& task) {
  const bool through_nic = task.queue == QueueKind::Proxy || task.queue == QueueKind::Ibgda;
  return task.kind == TaskKind::Copy && through_nic;
}

RankId destination_of(const Draft& draft, const DraftTask& put) {
  return draft.slot(put.writes.front()).rank;
}

QueueKind queue_of(Via via) {
  switch (via) {
    case Via::Ce:
      return QueueKind::Ce;
    case Via::Sm:
      return QueueKind::Sm;
    case Via::Tma:
      return QueueKind::Tma;
    case Via::Nccl:
      return QueueKind::Nccl;
    case Via::Proxy:
      return QueueKind::Proxy;
    case Via::Ibgda:
      return QueueKind::Ibgda;
    case Via::Multimem:
      return QueueKind::Multimem;
  }
  raise_internal_error("via", __FILE__, __LINE__, "not a transport");
}

std::vector<bool> holds_of(const Blocks& blocks, std::span<const int> digits,
                           const Region& region) {
  std::vector<bool> holds(digits.size());
  for (std::size_t i = 0; i < digits.size(); ++i) {
    holds[i] =
        region[i] == kAll || blocks.digits()[static_cast<std::size_t>(digits[i])].extent == 1;
  }
  return holds;
}

namespace {

// Cuts ascending blocks over some digits into boxes. `strides_`: the block difference of one step
// of each digit.
class BoxCutter {
 public:
  BoxCutter(const Blocks& blocks, std::span<const int> digits) : strides_(digits.size()) {
    std::int64_t stride = 1;
    for (std::size_t i = digits.size(); i-- > 0;) {
      strides_[i] = stride;
      extents_.push_back(blocks.digits()[static_cast<std::size_t>(digits[i])].extent);
      stride *= extents_.back();
    }
    std::ranges::reverse(extents_);
  }

  // Cuts along the first digit that has gaps or whose slices differ, then merges equal neighbours.
  void cut(std::span<const BlockId> blocks, std::size_t digit, std::vector<Box>& out) const {
    Box whole;
    if (as_product(blocks, whole)) {
      out.push_back(std::move(whole));
      return;
    }
    const std::size_t first = out.size();
    while (!blocks.empty()) {
      const BlockId next = (blocks.front() / strides_[digit] + 1) * strides_[digit];
      const auto end = std::ranges::lower_bound(blocks, next);
      const auto count = static_cast<std::size_t>(end - blocks.begin());
      std::vector<Box> slice;
      cut(blocks.first(count), digit + 1, slice);
      append(slice, digit, first, out);
      blocks = blocks.subspan(count);
    }
  }

 private:
  [[nodiscard]] std::int32_t value_of(BlockId block, std::size_t digit) const {
    return static_cast<std::int32_t>(block / strides_[digit] % extents_[digit]);
  }

  // Makes one box if the blocks are a product of contiguous ranges; the box then spans from the
  // first block to the last.
  [[nodiscard]] bool as_product(std::span<const BlockId> blocks, Box& box) const {
    box.resize(strides_.size());
    std::int64_t product = 1;
    for (std::size_t i = 0; i < box.size(); ++i) {
      box[i] = {value_of(blocks.front(), i), value_of(blocks.back(), i) + 1};
      if (box[i].lo >= box[i].hi) return false;
      product *= box[i].hi - box[i].lo;
    }
    return product == std::ssize(blocks) && is_filled(blocks, box);
  }

  // Whether the blocks, as many as the box has, fill the box. Compares whole runs without gaps.
  [[nodiscard]] bool is_filled(std::span<const BlockId> blocks, const Box& box) const {
    std::size_t inner = box.size();  // digits from here on are within a run
    std::int64_t run = 1;
    for (bool is_whole = true; is_whole && inner > 0;) {
      --inner;
      const std::int64_t range = box[inner].hi - box[inner].lo;
      run *= range;
      is_whole = range == extents_[inner];
    }
    Box at(box.begin(), box.begin() + static_cast<std::ptrdiff_t>(inner));
    BlockId begin = blocks.front();
    for (auto rest = blocks; !rest.empty(); rest = rest.subspan(static_cast<std::size_t>(run))) {
      const BlockId last = rest[static_cast<std::size_t>(run) - 1];
      if (rest.front() != begin || last != begin + run - 1) return false;
      begin += step(at, box, inner);
    }
    return true;
  }

  // Advances the digits before `inner` within the box; returns the block difference.
  std::int64_t step(Box& at, const Box& box, std::size_t inner) const {
    std::int64_t added = 0;
    for (std::size_t i = inner; i-- > 0;) {
      added += strides_[i];
      if (++at[i].lo < box[i].hi) return added;
      added -= (at[i].lo - box[i].lo) * strides_[i];
      at[i].lo = box[i].lo;
    }
    return added;
  }

  // Appends `slice`. Merges it with the boxes from `first` on if they differ only in `digit`.
  static void append(std::vector<Box>& slice, std::size_t digit, std::size_t first,
                     std::vector<Box>& out) {
    const std::size_t count = slice.size();
    bool merged = out.size() - first >= count && count > 0;
    for (std::size_t i = 0; merged && i < count; ++i) {
      Box grown = out[out.size() - count + i];
      merged = grown[digit].hi == slice[i][digit].lo;
      grown[digit] = slice[i][digit];
      merged = merged && grown == slice[i];
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (merged) {
        out[out.size() - count + i][digit].hi = slice[i][digit].hi;
      } else {
        out.push_back(std::move(slice[i]));
      }
    }
  }

  std::vector<std::int64_t> strides_;
  std::vector<std::int32_t> extents_;
};

}  // namespace

std::vector<Box> boxes_of(const Blocks& blocks, std::span<const int> digits,
                          const std::vector<BlockId>& block_ids) {
  std::vector<Box> boxes;
  if (!block_ids.empty()) BoxCutter(blocks, digits).cut(block_ids, 0, boxes);
  return boxes;
}

SlotIndex::SlotIndex(const Blocks& blocks, std::span<const int> digits,
                     const std::vector<bool>& holds) {
  std::int64_t contents = 1;
  for (std::size_t i = digits.size(); i-- > 0;) {
    const std::int64_t extent = blocks.digits()[static_cast<std::size_t>(digits[i])].extent;
    if (extent == 1) continue;
    std::int64_t& stride = holds[i] ? size_ : contents;
    if (!steps_.empty() && steps_.back().held == holds[i]) {
      steps_.back().extent *= extent;
    } else {
      steps_.push_back({.extent = extent, .stride = stride, .held = holds[i]});
    }
    stride *= extent;
  }
  if (steps_.empty()) return;
  group_ = steps_.front().extent;
  is_first_held_ = steps_.front().held;
  steps_.back().extent = std::int64_t{1} << 62;  // the last digit takes the whole quotient
  for (Step& step : steps_) {
    const auto extent = static_cast<std::uint64_t>(step.extent);
    if (std::has_single_bit(extent)) step.shift = std::countr_zero(extent);
  }
}

SlotIndex::Place SlotIndex::locate(BlockId block) const {
  Place place{0, 0};
  for (const Step& step : steps_) {
    std::int64_t value = 0;
    if (step.shift >= 0) {  // divisions would dominate the time of loops over blocks
      value = block & (step.extent - 1);
      block >>= step.shift;
    } else {
      value = block % step.extent;
      block /= step.extent;
    }
    (step.held ? place.local : place.content) += value * step.stride;
  }
  return place;
}

std::string print(const Draft& draft) {
  std::string out;
  const auto extents_of = [&](std::span<const int> digits) {
    std::vector<std::int32_t> extents;
    for (const int d : digits)
      extents.push_back(draft.blocks.digits()[static_cast<std::size_t>(d)].extent);
    return extents;
  };
  const auto print_ref = [&](const DraftRef& ref) {
    constexpr std::string_view kModes[] = {"r", "init", "add", "set"};
    out += " " + std::string(kModes[static_cast<std::size_t>(ref.mode)]) + " r" +
           std::to_string(draft.slot(ref).rank.value) + ":" + draft.slot(ref).name;
    const auto& digits = draft.digits_of(ref.slot);
    for (const Box& box : boxes_of(draft.blocks, digits, ref.blocks)) {
      out += print_box(box, extents_of(digits));
    }
  };
  for (std::size_t i = 0; i < draft.tasks.size(); ++i) {
    const DraftTask& task = draft.tasks[i];
    out += std::to_string(i) + " rank " + std::to_string(task.rank.value) + " " +
           std::string(print(task.queue)) + " " +
           (task.is_barrier ? "barrier" : std::string(print(task.kind)));
    if (!task.iter.empty()) {
      const auto& digits = draft.nest_digits[static_cast<std::size_t>(task.nest)];
      out += " iter ";
      for (const Box& box : boxes_of(draft.blocks, digits, task.iter)) {
        out += print_box(box, extents_of(digits));
      }
    }
    for (const DraftRef& ref : task.reads) print_ref(ref);
    for (const DraftRef& ref : task.writes) print_ref(ref);
    if (!task.after.empty()) out += " after";
    for (const int before : task.after) out += " " + std::to_string(before);
    out += "\n";
  }
  return out;
}

}  // namespace harpe
