#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/interpret_attention_axes.h"

namespace harpe {

// The pairs that the masks on data of one statement show, by batch entry, query and key position.
class MaskData {
 public:
  // Errors: P205 a buffer is not indexed by batch entry.
  [[nodiscard]] static Checked<MaskData> make(const LeafCall& call, const AttentionAxes& axes,
                                              const AxisList& entries);

  // `entry` is a point of `entries`, row-major; `key` is the key's place in storage.
  [[nodiscard]] bool shows(std::int64_t entry, std::int64_t query, std::int64_t key) const;
  // The shown parts of `runs`.
  [[nodiscard]] std::vector<KeyRun> shown_of(const std::vector<KeyRun>& runs, std::int64_t entry,
                                             std::int64_t query) const;

 private:
  // A buffer of integers, with the begin of each entry's part.
  struct Table {
    std::vector<std::int64_t> values;
    std::vector<std::int64_t> begin;
    [[nodiscard]] std::int64_t at(std::int64_t entry, std::int64_t i) const {
      return values[static_cast<std::size_t>(begin[static_cast<std::size_t>(entry)] + i)];
    }
  };

  static Table read(const NamedTensor& tensor, const AxisList& entries);
  // Rows of `length` entries; `stored`: number of pages in storage.
  [[nodiscard]] Table invert(const Table& pages, std::int64_t length, std::int64_t stored) const;

  std::optional<Table> documents_;
  std::optional<Table> lengths_;
  std::optional<Table> places_;  // per storage page: its page of the sequence; or -1
  std::int64_t page_ = 0;
};

}  // namespace harpe
