#include "exec/cpu/kernels/mask_tables.h"

#include <algorithm>

#include "exec/cpu/kernels/scratch.h"

namespace harpe {
namespace {

// Labels keys that lie in pages; no document mask combines with them.
void label_pages(const MaskTables& tables, std::int64_t keys, std::int64_t* labels) {
  std::fill_n(labels, keys, kUnseenLabel);
  for (std::int64_t i = 0; i < tables.page_count; ++i) {
    const std::int64_t left =
        tables.length.exists() ? tables.length.at(0) - i * tables.page : tables.page;
    if (left <= 0) break;
    const std::int64_t held = tables.pages.at(i);
    if (held < 0) continue;
    const std::int64_t first = held * tables.page - tables.first_key;
    const std::int64_t begin = std::max<std::int64_t>(first, 0);
    const std::int64_t end = std::min(first + std::min(left, tables.page), keys);
    if (begin < end) std::fill(labels + begin, labels + end, 0);
  }
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
  if (tables.pages.exists()) {
    label_pages(tables, keys, of_keys);
    return {labels, of_keys};
  }
  for (std::int64_t i = 0; i < keys; ++i) {
    const std::int64_t position = tables.first_key + i;
    const bool exists = !tables.length.exists() || position < tables.length.at(0);
    of_keys[i] = exists ? document(position) : kUnseenLabel;
  }
  return {labels, of_keys};
}

}  // namespace harpe
