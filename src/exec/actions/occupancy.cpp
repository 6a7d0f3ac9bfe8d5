#include "exec/actions/occupancy.h"

#include "ir/routing.h"
#include "support/check.h"

namespace harpe::actions {

Occupancy::Occupancy(const Plan& plan, const Blocks& blocks) : rows_(plan.allocs.size(), nullptr) {
  std::vector<std::size_t> offsets(plan.allocs.size());
  std::vector<bool> is_ragged(plan.allocs.size());
  for (std::size_t i = 0; i < plan.allocs.size(); ++i) {
    const Buffer* const buffer = find_buffer(plan.program, plan.allocs[i].buffer);
    HP_CHECK(buffer != nullptr, "buffer of `" + plan.allocs[i].name + "`");
    const Axis* const ragged = find_ragged_axis(plan.program, *buffer);
    if (ragged == nullptr) continue;
    const auto slots = static_cast<std::size_t>(blocks.find_axis(ragged->name));
    is_ragged[i] = true;
    offsets[i] = size_;
    size_ += static_cast<std::size_t>(size_of(*find_axis(plan.program, ragged->of)) *
                                      blocks.axes()[slots].blocks);
  }
  memory_ = std::make_unique<std::int32_t[]>(size_);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (is_ragged[i]) rows_[i] = memory_.get() + offsets[i];
  }
}

void Occupancy::clear() const { std::fill_n(memory_.get(), size_, 0); }

void RaggedAxis::add_cuts(std::vector<std::vector<std::int64_t>>& cuts,
                          const std::vector<Interval>& box) const {
  if (cuts.size() < box.size()) cuts.resize(box.size());
  cuts[slot].insert(cuts[slot].end(), slots->starts.begin(), slots->starts.end());
  for (std::int64_t e = box[owner].begin; e < box[owner].end; ++e) cuts[owner].push_back(e);
}

std::ptrdiff_t RaggedAxis::number_of(const std::vector<Interval>& span) const {
  HP_CHECK(span[owner].size() == 1, "a cell of one owner of its ragged axis");
  const auto next = std::ranges::upper_bound(slots->starts, span[slot].begin);
  const std::int64_t block = next - slots->starts.begin() - 1;
  return span[owner].begin * slots->blocks + block;
}

std::int64_t RaggedAxis::rows_before(const std::vector<Interval>& span) const {
  const auto next = std::ranges::upper_bound(slots->starts, span[slot].begin);
  return span[slot].begin - *(next - 1);
}

std::optional<RaggedAxis> ragged_axis_of_space(const Plan& plan, const Blocks& blocks,
                                               std::span<const int> keys) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] < 0) continue;
    const AxisTable& table = blocks.axes()[static_cast<std::size_t>(keys[i])];
    const std::string& owner = find_axis(plan.program, table.name)->of;
    if (owner.empty()) continue;
    const auto at = std::ranges::find(keys, blocks.find_axis(owner));
    if (at == keys.end()) continue;
    return RaggedAxis{
        .slot = i, .owner = static_cast<std::size_t>(at - keys.begin()), .slots = &table};
  }
  return std::nullopt;
}

}  // namespace harpe::actions
