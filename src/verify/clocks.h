#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "verify/order.h"

namespace harpe::verifier {

// Per strand the position of its last task known to be over, or -1. Rows with equal values share
// pages: of thousands of puts, each row covers only a few.
class Row {
 public:
  Row() = default;
  explicit Row(std::int32_t strands);

  [[nodiscard]] std::int32_t at(std::int32_t strand) const;
  void raise(std::int32_t strand, std::int32_t position);  // to at least `position`
  void join(const Row& other);

 private:
  static constexpr std::size_t kStrands = 512;  // per page
  using Page = std::array<std::int32_t, kStrands>;
  std::vector<std::shared_ptr<Page>> pages_;  // null: -1 throughout; copied on write if shared
};

// Computes which tasks are known to be over when a task starts. Visits units in the order's
// sequence and frees rows that no later unit needs.
class Clocks {
 public:
  explicit Clocks(const Order& order);

  // Requires: called for the units in `sequence` order, and within a group for each member before
  // `finish`. The row is valid until the next call.
  [[nodiscard]] const Row& start(std::int32_t node);
  void finish(std::int32_t unit);

 private:
  void join(std::int32_t node, Covers covers);
  void note(std::int32_t task);

  const Order& order_;
  // Per unit: the joined start clocks of its members, plus the task itself if it is not a put.
  std::vector<Row> rows_;
  std::vector<std::int32_t> waiting_;  // per unit: edges out of it that are still unused
  Row none_;
  Row current_;
  Row joined_;
};

}  // namespace harpe::verifier
