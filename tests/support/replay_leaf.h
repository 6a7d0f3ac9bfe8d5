#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/blocks.h"
#include "ir/mask.h"
#include "plan/plan.h"

// Statements as tests/support/replay.h runs them.
namespace harpe::test {

class Symbols {
 public:
  int of(const std::string& text) {
    return known_.try_emplace(text, static_cast<int>(known_.size())).first->second;
  }

 private:
  std::map<std::string, int> known_;
};

using Point = std::vector<std::int32_t>;

inline std::vector<Point> points_in(const Box& box) {
  std::vector<Point> points = {{}};
  for (const Range& range : box) {
    std::vector<Point> longer;
    for (const Point& point : points) {
      for (std::int32_t v = range.lo; v < range.hi; ++v) {
        longer.push_back(point);
        longer.back().push_back(v);
      }
    }
    points = std::move(longer);
  }
  return points;
}

// One statement and the blocks that each iteration touches.
class Leaf {
 public:
  Leaf(const Program& program, const Blocks& blocks, const Nest& nest, std::size_t stmt)
      : program_(program),
        blocks_(blocks),
        nest_(nest),
        stmt_(nest.stmts[stmt]),
        index_(stmt),
        digits_(iteration_digits(program, blocks, nest)) {}

  [[nodiscard]] const Stmt& stmt() const { return stmt_; }
  [[nodiscard]] std::string name() const { return nest_.name + "." + std::to_string(index_); }
  [[nodiscard]] const std::vector<int>& digits() const { return digits_; }

  [[nodiscard]] bool runs(const Point& point) const {
    for (const int digit : digits_) {
      const int axis = blocks_.digits()[static_cast<std::size_t>(digit)].axis;
      if (interval(axis, point).size() == 0) return false;
    }
    const std::optional<ResolvedMask> mask = resolve_masks(blocks_, stmt_);
    return !mask || classify(mask->visible, interval(mask->query_axis, point),
                             interval(mask->key_axis, point)) != Coverage::Empty;
  }

  // The non-empty blocks of an access, as points over the buffer's digits.
  [[nodiscard]] std::vector<Point> touched(const Access& access, const Point& point) const {
    const BufferTable& buffer =
        blocks_.buffers()[static_cast<std::size_t>(blocks_.find_buffer(access.buffer))];
    Box box;
    for (const int digit : buffer.digits) {
      const DigitTable& table = blocks_.digits()[static_cast<std::size_t>(digit)];
      const auto found = std::ranges::find(digits_, followed(access, digit));
      if (found == digits_.end()) {
        box.push_back({.lo = 0, .hi = table.extent});
      } else {
        const std::int32_t value = point[static_cast<std::size_t>(found - digits_.begin())];
        box.push_back({.lo = value, .hi = value + 1});
      }
    }
    std::vector<Point> points = points_in(box);
    std::erase_if(points, [&](const Point& p) { return is_empty(access.buffer, p); });
    return points;
  }

  [[nodiscard]] bool is_empty(const std::string& buffer, const Point& point) const {
    const int id = blocks_.find_buffer(buffer);
    const BufferTable& table = blocks_.buffers()[static_cast<std::size_t>(id)];
    BlockId block = 0;
    for (std::size_t i = 0; i < point.size(); ++i) block += point[i] * table.strides[i];
    return blocks_.elements(id, block) == 0;
  }

  // The symbol of the leaf's result at a point: every block that it read, and where.
  template <class Lookup>
  [[nodiscard]] int contribution(Symbols& symbols, const Point& point, Lookup&& lookup) const {
    std::string text = "leaf " + name() + " at ";
    for (const std::int32_t v : point) text += std::to_string(v) + ",";
    for (const Access& operand : stmt_.operands) {
      text += " " + operand.buffer + ":";
      for (const Point& block : touched(operand, point)) {
        text += std::to_string(lookup(operand.buffer, block)) + ",";
      }
    }
    return symbols.of(text);
  }

 private:
  [[nodiscard]] Interval interval(int axis, const Point& point) const {
    return blocks_.interval(axis, blocks_.axis_block(axis, digits_, point));
  }

  [[nodiscard]] int followed(const Access& access, int digit) const {
    const int axis = blocks_.digits()[static_cast<std::size_t>(digit)].axis;
    const AxisTable& own = blocks_.axes()[static_cast<std::size_t>(axis)];
    for (const Rename& rename : access.renames) {
      if (rename.axis != own.name) continue;
      if (const Route* const route = find_route(program_, rename.source)) {
        return partner(*route, digit, own);
      }
      const auto place = std::ranges::find(own.digits, digit) - own.digits.begin();
      return blocks_.axes()[static_cast<std::size_t>(blocks_.find_axis(rename.source))]
          .digits[static_cast<std::size_t>(place)];
    }
    return digit;
  }

  // Slot and token digits correspond through their slabs; expert digits keep their own. The routes
  // of the tests do not rename axes.
  [[nodiscard]] int partner(const Route& route, int digit, const AxisTable& own) const {
    if (own.name == route.slots[0]) return digit;
    const int slots = blocks_.find_axis(route.slots[1]);
    for (const auto& [slot, token] : blocks_.axes()[static_cast<std::size_t>(slots)].slabs) {
      if (digit == slot) return token;
      if (digit == token) return slot;
    }
    return -1;
  }

  const Program& program_;
  const Blocks& blocks_;
  const Nest& nest_;
  const Stmt& stmt_;
  std::size_t index_;
  std::vector<int> digits_;
};

}  // namespace harpe::test
