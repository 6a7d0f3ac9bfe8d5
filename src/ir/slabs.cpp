#include "ir/slabs.h"

#include <algorithm>
#include <map>

#include "support/check.h"

namespace harpe {
namespace {

struct AxisBlock {
  std::int64_t logical = 0;
  Interval interval;
  Region values;  // of the axis' digits
};

// The non-empty blocks of an axis, in logical order.
std::vector<AxisBlock> blocks_of(const Blocks& blocks, int axis) {
  const AxisTable& table = blocks.axes()[static_cast<std::size_t>(axis)];
  std::vector<AxisBlock> out;
  for (std::int64_t block = 0; block < table.blocks; ++block) {
    const Interval interval = blocks.interval(axis, block);
    if (interval.size() == 0) continue;
    out.push_back({.logical = table.logical[static_cast<std::size_t>(block)],
                   .interval = interval,
                   .values = blocks.region_of(table.digits, block)});
  }
  std::ranges::sort(out, {}, &AxisBlock::logical);
  return out;
}

// The values of some digits in a block of the axis.
std::vector<std::int32_t> values_of(const AxisTable& table, const AxisBlock& block,
                                    const std::vector<int>& digits) {
  std::vector<std::int32_t> values;
  for (const int digit : digits) {
    const auto at = std::ranges::find(table.digits, digit);
    HP_CHECK(at != table.digits.end(), "a digit of axis `" + table.name + "`");
    values.push_back(block.values[static_cast<std::size_t>(at - table.digits.begin())]);
  }
  return values;
}

}  // namespace

std::vector<Slab> slabs_of(const Blocks& blocks, const Route& route) {
  const int slot_axis = blocks.find_axis(route.slots[1]);
  const int token_axis = blocks.find_axis(route.choices[0]);
  const AxisTable& slots = blocks.axes()[static_cast<std::size_t>(slot_axis)];
  const AxisTable& tokens = blocks.axes()[static_cast<std::size_t>(token_axis)];
  std::vector<int> own;
  std::vector<int> sources;
  for (const auto& [slot, source] : slots.slabs) {
    own.push_back(slot);
    sources.push_back(source);
  }
  std::map<std::vector<std::int32_t>, Slab> slabs;
  for (const AxisBlock& block : blocks_of(blocks, slot_axis)) {
    Slab& slab = slabs[values_of(slots, block, own)];
    const std::int64_t before =
        slab.parts.empty() ? 0 : slab.parts.back().before + slab.parts.back().slots.size();
    slab.parts.push_back({.slots = block.interval,
                          .before = before,
                          .block = block.logical,
                          .blocks = slots.blocks});
  }
  for (const AxisBlock& block : blocks_of(blocks, token_axis)) {
    Slab& slab = slabs[values_of(tokens, block, sources)];
    const bool continues = !slab.tokens.empty() && slab.tokens.back().end == block.interval.begin;
    if (continues) {
      slab.tokens.back().end = block.interval.end;
    } else {
      slab.tokens.push_back(block.interval);
    }
  }
  std::vector<Slab> out;
  for (auto& [values, slab] : slabs) out.push_back(std::move(slab));
  return out;
}

std::int32_t digit_at(const Blocks& blocks, int axis, int digit, std::int64_t position) {
  const AxisTable& table = blocks.axes()[static_cast<std::size_t>(axis)];
  const auto next = std::ranges::upper_bound(table.starts, position);
  const std::int64_t logical = next - table.starts.begin() - 1;
  const auto block = std::ranges::find(table.logical, logical) - table.logical.begin();
  const auto at = std::ranges::find(table.digits, digit);
  HP_CHECK(at != table.digits.end(), "a digit of axis `" + table.name + "`");
  return blocks.region_of(table.digits, block)[static_cast<std::size_t>(at - table.digits.begin())];
}

}  // namespace harpe
