#include "exec/cuda/actions/merge_attention.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace harpe::cuda {
namespace {

bool same(const HeadTensor& one, const HeadTensor& other) {
  return one.address == other.address && one.strides.batch == other.strides.batch &&
         one.strides.row == other.strides.row && one.strides.head == other.strides.head;
}

bool alike(const AttentionSpec& one, const AttentionSpec& other) {
  return one.batch == other.batch && one.heads == other.heads && one.kv_heads == other.kv_heads &&
         one.scale == other.scale && one.query_dim == other.query_dim &&
         one.value_dim == other.value_dim && one.element == other.element;
}

bool alike(const AttentionPanelSpec& one, const AttentionPanelSpec& other) {
  return one.rows == other.rows && same(one.queries, other.queries) &&
         same(one.output, other.output) && same(one.lse, other.lse);
}

bool alike(const AttentionChunkSpec& one, const AttentionChunkSpec& other) {
  return one.rows == other.rows && same(one.keys, other.keys) && same(one.values, other.values);
}

// The place of one like it in `all`, which may become its.
template <class Spec>
std::size_t place_in(std::vector<Spec>& all, const Spec& one) {
  const auto found = std::ranges::find_if(all, [&](const Spec& each) { return alike(each, one); });
  if (found != all.end()) return static_cast<std::size_t>(found - all.begin());
  all.push_back(one);
  return all.size() - 1;
}

// One launch: a panel of queries meets a chunk of keys.
struct Meeting {
  std::size_t panel = 0;
  std::size_t chunk = 0;
  std::optional<PositionRule> rule;  // none: all is seen
};

using Position = std::optional<std::int64_t>;

// Positions of panels and chunks at which every launch's lead is kept.
struct Placement {
  std::vector<Position> panels;
  std::vector<Position> chunks;

  // False where two launches contradict each other.
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

class AttentionMerger {
 public:
  std::optional<AttentionSpec> merge(std::span<const ArrivingLaunch> launches) {
    for (const ArrivingLaunch& launch : launches) {
      const auto* spec = std::get_if<AttentionSpec>(&launch.spec);
      if (spec == nullptr || !add(*spec, launch.ready)) return std::nullopt;
    }
    const auto is_ruled = [](const Meeting& meeting) { return meeting.rule.has_value(); };
    const bool fits = std::ranges::any_of(meetings_, is_ruled)
                          ? place()
                          : meetings_.size() == merged_.panels.size() * merged_.chunks.size();
    if (!fits) return std::nullopt;
    return std::move(merged_);
  }

 private:
  [[nodiscard]] bool add(const AttentionSpec& spec, const device::FlagWait& ready) {
    if (merged_.panels.empty()) {
      merged_ = spec;
      merged_.panels.clear();
      merged_.chunks.clear();
      merged_.causal = false;
      merged_.window = 0;
      merged_.rule = std::nullopt;
      merged_.parts = 1;
    }
    if (!alike(spec, merged_) || (spec.causal && !spec.rule)) return false;
    if (spec.rule) merged_.window = spec.rule->window;
    const std::size_t panels = merged_.panels.size();
    const Meeting meeting{.panel = place_in(merged_.panels, spec.panels.front()),
                          .chunk = place_in(merged_.chunks, spec.chunks.front()),
                          .rule = spec.rule};
    const bool begins = merged_.panels.size() > panels;
    if (spec.carried != (begins ? merged_.carried : true) || meet(meeting)) return false;
    meetings_.push_back(meeting);
    device::FlagWait& known = merged_.chunks[meeting.chunk].ready;
    if (known.flag != nullptr && known.flag != ready.flag) return false;
    known = ready;
    return true;
  }

  // Whether there is a launch of the same panel and chunk.
  [[nodiscard]] bool meet(const Meeting& meeting) const {
    return std::ranges::any_of(meetings_, [&](const Meeting& other) {
      return other.panel == meeting.panel && other.chunk == meeting.chunk;
    });
  }

  // By the rules of the launches. Keys without one are seen by all queries: they lie before them.
  [[nodiscard]] bool place() {
    Placement placement{.panels = std::vector<Position>(merged_.panels.size()),
                        .chunks = std::vector<Position>(merged_.chunks.size())};
    const bool is_one = std::ranges::all_of(meetings_, [&](const Meeting& meeting) {
      return !meeting.rule || meeting.rule->window == merged_.window;
    });
    if (!is_one || !placement.settle(meetings_)) return false;
    const std::int64_t first = **std::ranges::min_element(placement.panels);
    for (std::size_t i = 0; i < merged_.chunks.size(); ++i) {
      if (!placement.chunks[i] && merged_.window > 0) return false;
      merged_.chunks[i].position = placement.chunks[i].value_or(first + 1 - merged_.chunks[i].rows);
    }
    for (std::size_t i = 0; i < merged_.panels.size(); ++i) {
      merged_.panels[i].position = *placement.panels[i];
    }
    return hides_what_is_not_met() && move_to_zero();
  }

  [[nodiscard]] bool hides_what_is_not_met() {
    for (std::size_t i = 0; i < merged_.panels.size(); ++i) {
      const AttentionPanelSpec& panel = merged_.panels[i];
      for (std::size_t j = 0; j < merged_.chunks.size(); ++j) {
        const AttentionChunkSpec& chunk = merged_.chunks[j];
        const std::int64_t oldest = panel.position - merged_.window + 1;
        const bool is_hidden = chunk.position > panel.position + panel.rows - 1 ||
                               (merged_.window > 0 && chunk.position + chunk.rows - 1 < oldest);
        if (!is_hidden && !meet({.panel = i, .chunk = j, .rule = {}})) return false;
        merged_.causal = merged_.causal || merged_.window > 0 ||
                         chunk.position + chunk.rows - 1 > panel.position;
      }
    }
    return true;
  }

  // The first position becomes 0, and panels ascend.
  [[nodiscard]] bool move_to_zero() {
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max() / 2;
    std::ranges::stable_sort(merged_.panels, {}, &AttentionPanelSpec::position);
    std::int64_t least = merged_.panels.front().position;
    for (const AttentionChunkSpec& chunk : merged_.chunks) least = std::min(least, chunk.position);
    std::int64_t end = 0;
    for (AttentionPanelSpec& panel : merged_.panels) {
      panel.position -= least;
      end = std::max(end, panel.position + panel.rows);
    }
    for (AttentionChunkSpec& chunk : merged_.chunks) {
      chunk.position -= least;
      end = std::max(end, chunk.position + chunk.rows);
    }
    return end <= kMost;
  }

  AttentionSpec merged_;
  std::vector<Meeting> meetings_;
};

}  // namespace

std::optional<AttentionSpec> merge_attention(std::span<const ArrivingLaunch> launches) {
  return AttentionMerger().merge(launches);
}

}  // namespace harpe::cuda
