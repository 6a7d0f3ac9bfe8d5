#pragma once

#include "exec/cuda/device/numbers.cuh"
#include "exec/cuda/kernels/plain/device/plain_args.h"

// Masks on data: by its tables a query sees a key iff their labels are equal (see make_labels of
// the CPU kernels). Data of hidden keys are never used.
namespace harpe::device {

// A label that no query has.
inline constexpr std::int64_t kUnseenLabel = -0x7fffffffffffffffLL - 1;

HP_DEVICE std::int32_t entry_of(const PlainTable& table, std::int64_t at) {
  return table.data[at * table.stride];
}

HP_DEVICE void move_table(PlainTable& table, std::int64_t bytes) {
  if (table.data == nullptr) return;
  table.data = static_cast<const std::int32_t*>(moved(static_cast<const void*>(table.data), bytes));
}

HP_DEVICE PlainTables tables_at(PlainTables tables, std::int64_t documents, std::int64_t length,
                                std::int64_t pages) {
  move_table(tables.documents, documents);
  move_table(tables.length, length);
  move_table(tables.pages, pages);
  return tables;
}

// The number of page-table entries in use: those within the length.
HP_DEVICE std::int64_t used_pages(const PlainTables& tables) {
  if (tables.length.data == nullptr) return tables.page_count;
  const std::int64_t pages = (tables.length.data[0] + tables.page - 1) / tables.page;
  return pages < tables.page_count ? pages : tables.page_count;
}

// The page of the sequence that page `held` of the storage holds: the last entry that names it, or
// -1. By a warp with one `held`.
HP_DEVICE std::int64_t find_page(const PlainTables& tables, std::int64_t held) {
  const auto lane = static_cast<std::int64_t>(threadIdx.x % 32);
  const std::int64_t used = used_pages(tables);
  std::int64_t found = -1;
#pragma unroll 4
  for (std::int64_t first = 0; first < used; first += 32) {
    const bool is_it = first + lane < used && entry_of(tables.pages, first + lane) == held;
    const std::uint32_t lanes = __ballot_sync(~0U, is_it);
    if (lanes != 0) found = first + 31 - __clz(static_cast<int>(lanes));
  }
  return found;
}

// The position in the sequence of each lane's place in the storage, or -1. By a warp.
HP_DEVICE std::int64_t position_of(const PlainTables& tables, std::int64_t place, bool exists) {
  const std::int64_t mine = exists ? place / tables.page : -1;
  std::int64_t position = -1;
  std::uint32_t left = __ballot_sync(~0U, exists);
  while (left != 0) {
    const std::int64_t held = __shfl_sync(~0U, mine, __ffs(static_cast<int>(left)) - 1);
    const std::int64_t page = find_page(tables, held);
    if (mine == held && page >= 0) position = page * tables.page + (place - held * tables.page);
    left &= ~__ballot_sync(~0U, mine == held);
  }
  return position;
}

// The label of each lane's key; `exists`: the lane has a key. By a warp.
HP_DEVICE std::int64_t key_label(const PlainTables& tables, std::int64_t key, bool exists) {
  const std::int64_t place = tables.first_key + key;
  std::int64_t position = place;
  if (tables.pages.data != nullptr) {
    position = position_of(tables, place, exists);
    exists = exists && position >= 0;
  }
  if (tables.length.data != nullptr) exists = exists && position < tables.length.data[0];
  if (!exists) return kUnseenLabel;
  return tables.documents.data == nullptr ? 0 : entry_of(tables.documents, place);
}

HP_DEVICE std::int64_t query_label(const PlainTables& tables, std::int64_t query, bool exists) {
  if (!exists || tables.documents.data == nullptr) return 0;
  return entry_of(tables.documents, tables.first_query + query);
}

}  // namespace harpe::device
