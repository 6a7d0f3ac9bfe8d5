#include "ir/interpret_masks.h"

#include <algorithm>

#include "ir/mask_contract.h"
#include "support/check.h"

namespace harpe {

// Inverts a page table: from the place of each sequence page to the sequence page at each place.
MaskData::Table MaskData::invert(const Table& pages, std::int64_t length,
                                 std::int64_t stored) const {
  Table places{.values = {}, .begin = {}};
  for (std::size_t entry = 0; entry < pages.begin.size(); ++entry) {
    const auto at = static_cast<std::int64_t>(entry);
    places.begin.push_back(std::ssize(places.values));
    places.values.resize(places.values.size() + static_cast<std::size_t>(stored), -1);
    for (std::int64_t i = 0; i < length; ++i) {
      const std::int64_t held = pages.at(at, i);
      if (held < 0 || held >= stored || (lengths_ && i * page_ >= lengths_->at(at, 0))) continue;
      places.values[static_cast<std::size_t>(places.begin.back() + held)] = i;
    }
  }
  return places;
}

MaskData::Table MaskData::read(const NamedTensor& tensor, const AxisList& entries) {
  Table table{.values = {}, .begin = offsets_in(tensor, entries)};
  for (std::int64_t i = 0; i < element_count(*tensor.tensor); ++i) {
    table.values.push_back(static_cast<std::int64_t>(load(*tensor.tensor, i)));
  }
  return table;
}

Checked<MaskData> MaskData::make(const LeafCall& call, const AttentionAxes& axes,
                                 const AxisList& entries) {
  MaskData out;
  std::optional<Table> pages;
  std::int64_t count = 0;  // entries per row of pages
  for (const Mask& mask : call.stmt->masks) {
    const MaskCall rule = read_mask(mask);
    if (!rule.contract->data) continue;
    const auto tensor = std::ranges::find(call.mask_data, rule.data, &NamedTensor::buffer);
    HP_CHECK(tensor != call.mask_data.end(), "the data of mask `" + mask.call.function + "`");
    const AxisList table = rule.contract->table ? tensor->dims.back() : AxisList{};
    HP_REQUIRE_OK(check_axes(call, *tensor, {&axes.batch, &table}));
    Table read_values = read(*tensor, entries);
    if (rule.contract->kind == MaskKind::Doc) out.documents_ = std::move(read_values);
    if (rule.contract->kind == MaskKind::Length) out.lengths_ = std::move(read_values);
    if (rule.contract->kind == MaskKind::Paged) {
      pages = std::move(read_values);
      count = points_in(table);
      out.page_ = rule.number;
    }
  }
  if (pages) out.places_ = out.invert(*pages, count, points_in(axes.key) / out.page_);
  return out;
}

bool MaskData::shows(std::int64_t entry, std::int64_t query, std::int64_t key) const {
  if (documents_ && documents_->at(entry, query) != documents_->at(entry, key)) return false;
  std::int64_t position = key;
  if (places_) {
    const std::int64_t place = places_->at(entry, key / page_);
    if (place < 0) return false;
    position = place * page_ + key % page_;
  }
  return !lengths_ || position < lengths_->at(entry, 0);
}

std::vector<KeyRun> MaskData::shown_of(const std::vector<KeyRun>& runs, std::int64_t entry,
                                       std::int64_t query) const {
  if (!documents_ && !lengths_ && !places_) return runs;
  std::vector<KeyRun> shown;
  for (const KeyRun& run : runs) {
    bool open = false;
    for (std::int64_t key = run.begin; key < run.end; ++key) {
      const bool seen = shows(entry, query, key);
      if (seen && !open) shown.push_back({key, key});
      if (seen) shown.back().end = key + 1;
      open = seen;
    }
  }
  return shown;
}

}  // namespace harpe
