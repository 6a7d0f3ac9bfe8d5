#include "exec/cpu/kernels/mask_tables.h"

#include <algorithm>

#include "exec/cpu/kernels/scratch.h"

namespace harpe {
namespace {

constexpr std::int64_t kNowhere = -1;

// Per page of the storage: which page of the sequence it holds.
const std::int64_t* invert_pages(const MaskTables& tables) {
  auto* const holds = scratch_of<std::int64_t>(Scratch::Pages, tables.page_count);
  std::fill_n(holds, tables.page_count, kNowhere);
  for (std::int64_t i = 0; i < tables.page_count; ++i) {
    const std::int64_t page = tables.pages.at(i);
    if (page >= 0 && page < tables.page_count) holds[page] = i;
  }
  return holds;
}

}  // namespace

SeenLabels make_labels(const MaskTables& tables, std::int64_t queries, std::int64_t keys) {
  if (!tables.any()) return {};
  auto* const labels = scratch_of<std::int64_t>(Scratch::Labels, queries + keys);
  std::int64_t* const of_keys = labels + queries;
  const auto document = [&](std::int64_t position) {
    return tables.documents.exists() ? tables.documents.at(position) : 0;
  };
  for (std::int64_t i = 0; i < queries; ++i) labels[i] = document(tables.first_query + i);
  const std::int64_t* const holds = tables.pages.exists() ? invert_pages(tables) : nullptr;
  for (std::int64_t i = 0; i < keys; ++i) {
    const std::int64_t place = tables.first_key + i;
    std::int64_t position = place;
    if (holds != nullptr) {
      const std::int64_t page = holds[place / tables.page];
      position = page == kNowhere ? kNowhere : page * tables.page + place % tables.page;
    }
    const bool exists =
        position != kNowhere && (!tables.length.exists() || position < tables.length.at(0));
    of_keys[i] = exists ? document(place) : kUnseenLabel;
  }
  return {labels, of_keys};
}

}  // namespace harpe
