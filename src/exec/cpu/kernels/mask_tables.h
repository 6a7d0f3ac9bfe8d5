#pragma once

#include <cstdint>

#include "exec/actions/problems.h"

namespace harpe {

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
// of `pages` that number no page of the storage count as none.
[[nodiscard]] SeenLabels make_labels(const MaskTables& tables, std::int64_t queries,
                                     std::int64_t keys);

}  // namespace harpe
