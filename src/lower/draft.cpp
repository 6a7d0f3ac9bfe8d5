#include "lower/draft.h"

#include <algorithm>

#include "plan/text.h"

namespace harpe {

bool is_put(const DraftTask& task) {
  const bool through_nic = task.lane == LaneKind::Proxy || task.lane == LaneKind::Ibgda;
  return task.kind == TaskKind::Copy && through_nic;
}

RankId destination_of(const Draft& draft, const DraftTask& put) {
  return draft.slot(put.writes.front()).rank;
}

LaneKind lane_of(Via via) {
  switch (via) {
    case Via::Ce:
      return LaneKind::Ce;
    case Via::Sm:
      return LaneKind::Sm;
    case Via::Tma:
      return LaneKind::Tma;
    case Via::Nccl:
      return LaneKind::Nccl;
    case Via::Proxy:
      return LaneKind::Proxy;
    case Via::Ibgda:
      return LaneKind::Ibgda;
    case Via::Multimem:
      return LaneKind::Multimem;
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

using Values = std::vector<Region>;  // per block its digit values

// One box if the blocks are a product of contiguous ranges.
bool as_product(const Values& values, Box& box) {
  const std::size_t digits = values.front().size();
  box.assign(digits, Range{});
  std::size_t product = 1;
  for (std::size_t i = 0; i < digits; ++i) {
    std::int32_t lo = values.front()[i];
    std::int32_t hi = lo;
    for (const Region& v : values) {
      lo = std::min(lo, v[i]);
      hi = std::max(hi, v[i]);
    }
    box[i] = {lo, hi + 1};
    product *= static_cast<std::size_t>(hi + 1 - lo);
  }
  return product == values.size();  // distinct points inside the hull: all of it
}

// Cuts along the first digit that has gaps or differs between slices, then merges equal neighbours.
void cut(const Values& values, std::size_t digit, std::vector<Box>& out) {
  Box whole;
  if (as_product(values, whole)) {
    out.push_back(std::move(whole));
    return;
  }
  std::size_t begin = 0;
  const std::size_t first = out.size();
  while (begin < values.size()) {
    std::size_t end = begin;
    while (end < values.size() && values[end][digit] == values[begin][digit]) ++end;
    std::vector<Box> slice;
    cut(Values(values.begin() + static_cast<std::ptrdiff_t>(begin),
               values.begin() + static_cast<std::ptrdiff_t>(end)),
        digit + 1, slice);
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
    begin = end;
  }
}

}  // namespace

std::vector<Box> boxes_of(const Blocks& blocks, std::span<const int> digits,
                          const std::vector<BlockId>& block_ids) {
  std::vector<Box> boxes;
  if (block_ids.empty()) return boxes;
  Values values;
  values.reserve(block_ids.size());
  for (const BlockId block : block_ids) values.push_back(blocks.region_of(digits, block));
  cut(values, 0, boxes);
  return boxes;
}

SlotIndex::SlotIndex(const Blocks& blocks, std::span<const int> digits,
                     const std::vector<bool>& holds) {
  for (std::size_t i = digits.size(); i-- > 0;) {
    const std::int32_t extent = blocks.digits()[static_cast<std::size_t>(digits[i])].extent;
    steps_.push_back({extent, holds[i]});
    if (holds[i]) size_ *= extent;
  }
}

SlotIndex::Place SlotIndex::locate(BlockId block) const {
  Place place{0, 0};
  std::int64_t local_stride = 1;
  std::int64_t content_stride = 1;
  for (const Step& step : steps_) {
    const std::int64_t value = block % step.extent;
    block /= step.extent;
    if (step.held) {
      place.local += value * local_stride;
      local_stride *= step.extent;
    } else {
      place.content += value * content_stride;
      content_stride *= step.extent;
    }
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
           std::string(print(task.lane)) + " " +
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
