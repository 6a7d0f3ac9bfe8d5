#pragma once

#include <cstdint>

#include "exec/actions/problems.h"

namespace harpe {

// Masks on data as labels: these masks let a query see a key iff their labels are equal.
struct SeenLabels {
  const std::int64_t* queries = nullptr;  // null: every query sees every key
  const std::int64_t* keys = nullptr;
  [[nodiscard]] bool any() const { return keys != nullptr; }
  // The labels from `query` and from `key` on.
  [[nodiscard]] SeenLabels from(std::int64_t query, std::int64_t key) const {
    return any() ? SeenLabels{queries + query, keys + key} : SeenLabels();
  }
};

// The label of no query.
constexpr std::int64_t kUnseenLabel = INT64_MIN;

// Labels for `queries` and `keys`, in memory of the calling thread that is valid until its next
// call. Entries of `pages` outside the storage count as no page.
[[nodiscard]] SeenLabels make_labels(const MaskTables& tables, std::int64_t queries,
                                     std::int64_t keys);

}  // namespace harpe
