#include "exec/actions/occupancy.h"

#include <string_view>
#include <unordered_map>

#include "ir/routing.h"
#include "support/check.h"

namespace harpe::actions {

namespace {

// Count of numbers per allocation, by buffer name; 0 without a ragged axis.
using Counts = std::unordered_map<std::string_view, std::int64_t>;

Counts count_all(const Plan& plan, const Blocks& blocks) {
  Counts counts;
  for (const Buffer* const buffer : buffers_of(plan.program)) {
    counts[buffer->name] = Occupancy::count_numbers(plan, blocks, *buffer);
  }
  return counts;
}

// The share of an axis's slots that a route fills if it chooses all experts equally often.
double share_taken(const Program& program, const std::string& owner, const std::string& slots) {
  const auto size = [&](const std::string& axis) {
    return static_cast<double>(size_of(*find_axis(program, axis)));
  };
  for (const Decl& decl : program.decls) {
    const auto* const route = std::get_if<Route>(&decl);
    if (route == nullptr || route->slots != std::vector{owner, slots}) continue;
    double choices = 1;
    for (const std::string& axis : route->choices) choices *= size(axis);
    return std::min(1.0, choices / (size(owner) * size(slots)));
  }
  return 1;
}

}  // namespace

Occupancy::Occupancy(const Plan& plan, const Blocks& blocks, std::span<std::byte* const> memory)
    : rows_(plan.allocs.size(), nullptr) {
  std::vector<std::int32_t*> next;
  for (std::byte* const bytes : memory) next.push_back(reinterpret_cast<std::int32_t*>(bytes));
  const Counts counts = count_all(plan, blocks);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const std::int64_t numbers = counts.at(plan.allocs[i].buffer);
    if (numbers == 0) continue;
    std::int32_t*& at = next[plan.allocs[i].rank.index()];
    rows_[i] = at;
    at += numbers;
  }
}

std::int64_t Occupancy::count_numbers(const Plan& plan, const Blocks& blocks,
                                      const Buffer& buffer) {
  const Axis* const ragged = find_ragged_axis(plan.program, buffer);
  if (ragged == nullptr) return 0;
  const auto slots = static_cast<std::size_t>(blocks.find_axis(ragged->name));
  return size_of(*find_axis(plan.program, ragged->of)) * blocks.axes()[slots].blocks;
}

std::int64_t Occupancy::bytes_per_rank(const Plan& plan, const Blocks& blocks) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(plan.mesh.ranks()));
  const Counts counts = count_all(plan, blocks);
  for (const Alloc& alloc : plan.allocs) {
    numbers[alloc.rank.index()] += counts.at(alloc.buffer);
  }
  const std::int64_t most = numbers.empty() ? 0 : std::ranges::max(numbers);
  return most * static_cast<std::int64_t>(sizeof(std::int32_t));
}

Checked<Ok> check_buffers(const Program& program) {
  for (const Buffer* const buffer : buffers_of(program)) {
    const Axis* const ragged = find_ragged_axis(program, *buffer);
    if (ragged == nullptr || buffer->role == Role::Temp) continue;
    return make_diag(
        DiagCode::X015,
        {{"buffer", buffer->name}, {"axis", ragged->name}, {"role", print(buffer->role)}});
  }
  return Ok{};
}

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
    return RaggedAxis{.slot = i,
                      .owner = static_cast<std::size_t>(at - keys.begin()),
                      .slots = &table,
                      .taken = share_taken(plan.program, owner, table.name)};
  }
  return std::nullopt;
}

}  // namespace harpe::actions
