#include "ir/interpret_masks.h"

#include <algorithm>

#include "ir/mask_contract.h"
#include "support/check.h"

namespace harpe {
namespace {

// Rows that say where each page of a sequence lies, turned into what each page of storage holds.
std::vector<std::int64_t> inverse_rows(const std::vector<std::int64_t>& pages,
                                       std::int64_t length) {
  std::vector<std::int64_t> places(pages.size(), -1);
  for (std::size_t i = 0; i < pages.size(); ++i) {
    if (pages[i] < 0) continue;
    const auto row = static_cast<std::int64_t>(i) / length * length;
    places[static_cast<std::size_t>(row + pages[i])] = static_cast<std::int64_t>(i) - row;
  }
  return places;
}

}  // namespace

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
      read_values.values = inverse_rows(read_values.values, points_in(table));
      out.places_ = std::move(read_values);
      out.page_ = rule.number;
    }
  }
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
