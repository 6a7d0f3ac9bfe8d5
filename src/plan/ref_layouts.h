#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/blocks.h"
#include "plan/launch_plan.h"
#include "plan/plan.h"

namespace harpe::launch {

// A rectangle of elements along every axis of a buffer, as of a Place.
using Span = std::vector<Interval>;

[[nodiscard]] bool contains(const Span& whole, const Span& part);
[[nodiscard]] std::int64_t count_elements(const Span& span);

// Whether how many of the buffer's rows are used is known only at run time: it has the slots of a
// route and the axis that they belong to.
[[nodiscard]] bool is_ragged(const Plan& plan, const Blocks& blocks, int buffer);

// How the blocks that a reference names lie in its slot: rectangles, each contiguous in memory and
// in logical positions along every axis, with offsets and strides in elements and spans counted
// from an origin. References to further blocks of a slot that holds one at a time have one layout
// and different origins.
struct RefLayout {
  struct Part {
    Span span;
    std::int64_t offset = 0;
    std::vector<std::int64_t> strides;   // as the span's axes
    std::vector<std::size_t> outermost;  // axes, those of longer strides first
  };
  std::int32_t shape = 0;     // equal where parts differ in positions and the first's offset alone
  std::int64_t elements = 0;  // of the slot, with what lies between the parts
  std::vector<Part> parts;

  // Where in the slot the first part begins, in elements.
  [[nodiscard]] std::int64_t begin() const { return parts.empty() ? 0 : parts.front().offset; }
};

struct LaidRef {
  AllocId alloc;
  const RefLayout* layout = nullptr;
  std::vector<std::int64_t> origin;  // along each axis of its buffer

  // The part that holds a rectangle of logical positions; null where none holds all of it.
  // Parts from the one with index `likely` on are looked at first.
  [[nodiscard]] const RefLayout::Part* find(const Span& span, std::size_t likely = 0) const;
  // The logical positions of all parts.
  [[nodiscard]] std::vector<Span> spans() const;
  [[nodiscard]] std::int64_t elements() const;
};

struct WordsHash {
  std::size_t operator()(const std::vector<std::int32_t>& words) const;
};

// Layouts of a plan's references, each found once.
class RefLayouts {
 public:
  // Requires: both outlive this.
  RefLayouts(const Plan& plan, const Blocks& blocks);

  [[nodiscard]] LaidRef of(const Ref& ref);
  // All of a home.
  [[nodiscard]] const LaidRef& of_home(AllocId home);
  // The one rectangle that a reference names; none where there are several.
  [[nodiscard]] std::optional<Place> place_of(const Ref& ref);

  // How far one step of a digit is along its axis, in elements; 0 where the axis' blocks are not
  // equally long, or not in their order.
  [[nodiscard]] std::int64_t step_of(int digit) const {
    return steps_[static_cast<std::size_t>(digit)];
  }
  [[nodiscard]] int buffer_of(AllocId alloc) const { return buffers_[alloc.index()]; }

 private:
  void find_steps();
  void index_axes();
  void make_key(const Ref& ref, LaidRef& laid);
  [[nodiscard]] RefLayout make_layout(const Ref& ref) const;
  [[nodiscard]] std::int32_t shape_of(const RefLayout& layout);

  const Plan& plan_;
  const Blocks& blocks_;
  std::vector<std::int64_t> steps_;       // by digit
  std::vector<std::vector<int>> axes_;    // by buffer and digit: index among the buffer's axes
  std::vector<std::size_t> axis_counts_;  // by buffer, opaque ones too
  std::vector<int> buffers_;              // by allocation, like the next
  std::vector<std::int32_t> kinds_;       // of buffer and held digits
  std::vector<std::int32_t> key_;         // of the reference that is looked up
  std::unordered_map<std::vector<std::int32_t>, RefLayout, WordsHash> layouts_;
  std::map<std::vector<std::int64_t>, std::int32_t> shapes_;
  std::map<AllocId, LaidRef> homes_;
};

}  // namespace harpe::launch
