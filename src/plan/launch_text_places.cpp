#include "plan/launch_text_places.h"

#include <limits>

#include "plan/text_parts.h"

namespace harpe::launch {
namespace {

using plan_text::parse_count;
using plan_text::quote;

Diag bad_place(const Cursor& line, const Token& token, const std::string& alloc,
               const std::string& problem) {
  return line.locate(make_diag(DiagCode::V108, {{"alloc", alloc}, {"problem", problem}}), token);
}

}  // namespace

PlaceParser::PlaceParser(const Plan& plan, const Blocks& blocks) : blocks_(blocks) {
  for (const BufferTable& buffer : blocks.buffers()) {
    std::vector<Extent>& extents = extents_.emplace_back();
    for (const int axis : buffer.axes) {
      const AxisTable& table = blocks.axes()[static_cast<std::size_t>(axis)];
      extents.push_back({.name = table.name, .length = table.size});
    }
    for (const DimTable& dim : buffer.dims) {
      if (!dim.axes.empty()) continue;
      extents.push_back({.name = std::to_string(dim.opaque), .length = dim.opaque});
    }
  }
  for (const Alloc& alloc : plan.allocs) add_box(alloc);
}

void PlaceParser::add_box(const Alloc& box) {
  names_.emplace(std::pair(box.rank, box.name), AllocId(static_cast<std::int64_t>(allocs_.size())));
  const auto buffer = static_cast<std::size_t>(blocks_.find_buffer(box.buffer));
  allocs_.push_back({.name = box.name, .buffer = buffer});
}

Checked<AllocId> PlaceParser::parse_alloc(Cursor& line, RankId rank) const {
  const Token token = line.peek();
  HP_TRY(const std::string name, plan_text::parse_name(line));
  if (!rank.valid() || line.at("@")) {
    HP_REQUIRE_OK(line.expect("@"));
    HP_TRY(const std::int64_t other,
           plan_text::parse_reference(line, "rank", static_cast<std::size_t>(blocks_.ranks())));
    rank = RankId(other);
  }
  if (const auto found = names_.find({rank, name}); found != names_.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [key, id] : names_) {
    if (key.first == rank) known.push_back(key.second);
  }
  return line.locate(make_diag(DiagCode::V104, {{"what", "allocation"},
                                                {"name", name},
                                                {"where", "rank " + std::to_string(rank.value)},
                                                {"hint", suggestion(name, known)}}),
                     token);
}

Checked<Place> PlaceParser::parse_place(Cursor& line, RankId rank) const {
  Place place;
  HP_TRY(place.alloc, parse_alloc(line, rank));
  const auto& [alloc, buffer] = allocs_[place.alloc.index()];
  const std::vector<Extent>& extents = extents_[buffer];
  const Token start = line.peek();
  HP_REQUIRE_OK(line.expect("["));
  while (!line.at("]")) {
    if (!place.span.empty()) HP_REQUIRE_OK(line.expect(","));
    const std::size_t i = place.span.size();
    HP_TRY(place.span.emplace_back(),
           parse_span(line, alloc, i < extents.size() ? &extents[i] : nullptr));
  }
  line.take();
  if (place.span.size() == extents.size()) return place;
  std::vector<std::string> names;
  for (const Extent& extent : extents) names.push_back(extent.name);
  return bad_place(line, start, alloc, plan_text::wrong_length(place.span.size(), names));
}

Checked<Ok> PlaceParser::parse_places(Cursor& line, RankId rank, std::vector<Place>& places) const {
  const auto at_place = [&] {
    const std::string_view next = line.peek(1).text;
    return line.at(TokenKind::String) ||
           (line.at(TokenKind::Identifier) && (next == "." || next == "[" || next == "@"));
  };
  while (at_place()) {
    HP_TRY(places.emplace_back(), parse_place(line, rank));
  }
  return Ok{};
}

// `0:512`, or `*` for the whole axis. Without an extent there is one span too many, which the
// caller reports at the place.
Checked<Interval> PlaceParser::parse_span(Cursor& line, const std::string& alloc,
                                          const Extent* extent) {
  const std::int64_t length = extent == nullptr ? 0 : extent->length;
  const Token token = line.peek();
  if (line.accept("*")) return Interval{0, length};
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  Interval span;
  HP_TRY(span.begin, parse_count(line, "begin of the span", kMost));
  HP_REQUIRE_OK(line.expect(":"));
  HP_TRY(span.end, parse_count(line, "end of the span", kMost));
  if (extent == nullptr || (span.begin < span.end && span.end <= length)) return span;
  return bad_place(line, token, alloc,
                   "has " + std::to_string(span.begin) + ":" + std::to_string(span.end) +
                       " along " + quote(extent->name) + " of length " + std::to_string(length));
}

}  // namespace harpe::launch
