#include "launch/cut_panels.h"

#include <algorithm>
#include <set>
#include <utility>

namespace harpe::launch {
namespace {

// Positions inside a span at which boxes begin or end.
struct Cuts {
  std::size_t axis = 0;  // of the span
  std::set<std::int64_t> at;
};

bool meet(const Span& a, const Span& b) {
  for (std::size_t axis = 0; axis < a.size(); ++axis) {
    if (std::max(a[axis].begin, b[axis].begin) >= std::min(a[axis].end, b[axis].end)) return false;
  }
  return true;
}

// None where the cuts lie along several axes.
std::optional<Cuts> find_cuts(const Span& span, std::span<const Span> boxes) {
  Cuts cuts;
  for (const Span& box : boxes) {
    if (!meet(box, span)) continue;
    for (std::size_t axis = 0; axis < span.size(); ++axis) {
      for (const std::int64_t at : {box[axis].begin, box[axis].end}) {
        if (at <= span[axis].begin || at >= span[axis].end) continue;
        if (!cuts.at.empty() && cuts.axis != axis) return std::nullopt;
        cuts.axis = axis;
        cuts.at.insert(at);
      }
    }
  }
  return cuts;
}

// The index of the program's axis among the axes of the place's buffer.
std::optional<std::size_t> find_axis(const Draft& draft, const Place& place, int axis) {
  const int buffer = draft.layouts.buffer_of(place.alloc);
  const std::vector<int>& axes = draft.blocks.buffers()[static_cast<std::size_t>(buffer)].axes;
  const auto found = std::ranges::find(axes, axis);
  if (found == axes.end()) return std::nullopt;
  return static_cast<std::size_t>(found - axes.begin());
}

}  // namespace

std::optional<std::vector<Panel>> cut_panel(const Draft& draft, const Panel& panel,
                                            std::span<const Span> boxes) {
  const Place& first = panel.stores.front();
  std::optional<Cuts> cuts = find_cuts(first.span, boxes);
  if (!cuts) return std::nullopt;
  if (cuts->at.empty()) return std::vector{panel};
  const int buffer = draft.layouts.buffer_of(first.alloc);
  const std::vector<int>& axes = draft.blocks.buffers()[static_cast<std::size_t>(buffer)].axes;
  if (cuts->axis >= axes.size())
    return std::nullopt;  // the dimensions of a row's value cannot be
                          // cut
  const int axis = axes[cuts->axis];
  const auto has_axis = [&](const Place& place) {
    return find_axis(draft, place, axis).has_value();
  };
  if (!std::ranges::all_of(panel.stores, has_axis)) return std::nullopt;
  cuts->at.insert(first.span[cuts->axis].end);
  std::vector<Panel> parts;
  std::int64_t begin = first.span[cuts->axis].begin;
  for (const std::int64_t end : cuts->at) {
    Panel& part = parts.emplace_back(panel);
    for (std::vector<Place>* const places : {&part.reads, &part.stores}) {
      for (Place& place : *places) {
        const auto at = find_axis(draft, place, axis);
        if (at) place.span[*at] = {.begin = begin, .end = end};
      }
    }
    begin = end;
  }
  return parts;
}

}  // namespace harpe::launch
