#include "exec/cuda/kernels/attention/attention_positions.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace harpe::cuda {
namespace {

using Position = std::optional<std::int64_t>;

// Positions of panels and chunks at which every meeting's lead is kept.
struct Placement {
  std::vector<Position> panels;
  std::vector<Position> chunks;

  // False if two meetings contradict each other.
  [[nodiscard]] bool settle(std::span<const Meeting> meetings) {
    panels.front() = 0;
    for (bool changed = true; changed;) {
      changed = false;
      for (const Meeting& meeting : meetings) {
        if (!meeting.rule) continue;
        Position& panel = panels[meeting.panel];
        Position& chunk = chunks[meeting.chunk];
        if (panel.has_value() != chunk.has_value()) changed = true;
        if (panel && !chunk) chunk = *panel - meeting.rule->lead;
        if (chunk && !panel) panel = *chunk + meeting.rule->lead;
        if (panel && *panel - *chunk != meeting.rule->lead) return false;
      }
    }
    return std::ranges::all_of(panels, &Position::has_value);
  }
};

bool hides_what_does_not_meet(AttentionSpec& spec, std::span<const Meeting> meetings) {
  spec.causal = true;
  bool is_masked = spec.window > 0;
  for (std::size_t i = 0; i < spec.panels.size(); ++i) {
    for (std::size_t j = 0; j < spec.chunks.size(); ++j) {
      const bool meet = std::ranges::any_of(meetings, [&](const Meeting& meeting) {
        return meeting.panel == i && meeting.chunk == j;
      });
      if (!meet && !is_hidden(spec, spec.panels[i], spec.chunks[j])) return false;
      const std::int64_t last = spec.chunks[j].position + spec.chunks[j].rows - 1;
      is_masked = is_masked || last > spec.panels[i].position;
    }
  }
  spec.causal = is_masked;
  return true;
}

// Shifts positions so that the first is 0. False if the last is beyond what kernels can count.
bool move_to_zero(AttentionSpec& spec) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max() / 2;
  std::int64_t least = spec.panels.front().position;
  for (const AttentionPanelSpec& panel : spec.panels) least = std::min(least, panel.position);
  for (const AttentionChunkSpec& chunk : spec.chunks) least = std::min(least, chunk.position);
  std::int64_t end = 0;
  for (AttentionPanelSpec& panel : spec.panels) {
    panel.position -= least;
    end = std::max(end, panel.position + panel.rows);
  }
  for (AttentionChunkSpec& chunk : spec.chunks) {
    chunk.position -= least;
    end = std::max(end, chunk.position + chunk.rows);
  }
  return end <= kMost;
}

}  // namespace

// Every query sees keys without a rule, so these are placed before the first query.
bool place_by_rules(AttentionSpec& spec, std::span<const Meeting> meetings) {
  spec.causal = false;
  spec.window = 0;
  const auto ruled = std::ranges::find_if(
      meetings, [](const Meeting& meeting) { return meeting.rule.has_value(); });
  if (ruled == meetings.end()) return meetings.size() == spec.panels.size() * spec.chunks.size();
  spec.window = ruled->rule->window;
  const bool is_one = std::ranges::all_of(meetings, [&](const Meeting& meeting) {
    return !meeting.rule || meeting.rule->window == spec.window;
  });
  Placement placement{.panels = std::vector<Position>(spec.panels.size()),
                      .chunks = std::vector<Position>(spec.chunks.size())};
  if (!is_one || !placement.settle(meetings)) return false;
  const std::int64_t first = **std::ranges::min_element(placement.panels);
  for (std::size_t i = 0; i < spec.chunks.size(); ++i) {
    if (!placement.chunks[i] && spec.window > 0) return false;
    spec.chunks[i].position = placement.chunks[i].value_or(first + 1 - spec.chunks[i].rows);
  }
  for (std::size_t i = 0; i < spec.panels.size(); ++i) {
    spec.panels[i].position = *placement.panels[i];
  }
  return hides_what_does_not_meet(spec, meetings) && move_to_zero(spec);
}

bool is_hidden(const AttentionSpec& spec, const AttentionPanelSpec& panel,
               const AttentionChunkSpec& chunk) {
  if (!spec.causal) return false;
  const std::int64_t oldest = panel.position - spec.window + 1;
  return chunk.position > panel.position + panel.rows - 1 ||
         (spec.window > 0 && chunk.position + chunk.rows - 1 < oldest);
}

}  // namespace harpe::cuda
