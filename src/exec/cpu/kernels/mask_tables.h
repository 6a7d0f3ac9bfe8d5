#pragma once

#include <cstddef>
#include <cstdint>

namespace harpe {

// Integers of 32 bits, one after the other or apart.
struct IndexTable {
  const void* data = nullptr;  // none: no mask reads it
  std::int64_t stride = 1;
  [[nodiscard]] bool exists() const { return data != nullptr; }
  [[nodiscard]] std::int64_t at(std::int64_t i) const {
    return static_cast<const std::int32_t*>(data)[i * stride];
  }
};

// What masks on data (ir/program.h) read, of one batch entry.
struct MaskTables {
  IndexTable documents;  // by position, of queries and of keys
  IndexTable length;     // one number
  IndexTable pages;
  std::int64_t page_count = 0;   // entries of `pages`, and pages of the storage
  std::int64_t page = 0;         // keys of a page
  std::int64_t first_query = 0;  // position of the first row of q
  std::int64_t first_key = 0;    // place of the first row of k
  [[nodiscard]] bool any() const { return documents.exists() || length.exists() || pages.exists(); }
};

// The same as labels: a query sees a key, as far as data go, iff theirs are equal.
struct SeenLabels {
  const std::int64_t* queries = nullptr;  // none: every query sees every key
  const std::int64_t* keys = nullptr;
  [[nodiscard]] bool any() const { return keys != nullptr; }
  // Counted from `query` and from `key` on.
  [[nodiscard]] SeenLabels from(std::int64_t query, std::int64_t key) const {
    return any() ? SeenLabels{queries + query, keys + key} : SeenLabels();
  }
};

// No query's label.
constexpr std::int64_t kUnseenLabel = INT64_MIN;

// Of so many queries and keys, in memory of the calling thread: valid until its next call. Entries
// of `pages` that number no page count as none.
[[nodiscard]] SeenLabels make_labels(const MaskTables& tables, std::int64_t queries,
                                     std::int64_t keys);

}  // namespace harpe
