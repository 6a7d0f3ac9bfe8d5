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

// A rectangle of elements along every axis of a buffer, as in Place.
using Span = std::vector<Interval>;

[[nodiscard]] bool contains(const Span& whole, const Span& part);
[[nodiscard]] std::int64_t count_elements(const Span& span);

// Whether an earlier one of the places has all elements of places[index], as keys have those of the
// values that they hold.
[[nodiscard]] bool is_held(const std::vector<Place>& places, std::size_t index);

// Whether the number of used rows is known only at run time: the buffer has the slots of a route
// and the axis that owns them.
[[nodiscard]] bool is_ragged(const Plan& plan, const Blocks& blocks, int buffer);

// The layout in a slot of the blocks that a reference names: rectangles, each contiguous in memory
// and in logical positions along every axis. Offsets and strides are in elements; spans are
// relative to an origin. References to different contents of a slot share one layout and differ in
// the origin.
struct RefLayout {
  struct Part {
    Span span;
    std::int64_t offset = 0;
    std::vector<std::int64_t> strides;   // as the span's axes
    std::vector<std::size_t> outermost;  // axes, longest strides first
  };
  // Equal for layouts whose parts differ only in positions and the first offset.
  std::int32_t shape = 0;
  std::int64_t elements = 0;  // of the slot, including gaps between parts
  std::vector<Part> parts;

  // The element of the slot at which the first part begins.
  [[nodiscard]] std::int64_t begin() const { return parts.empty() ? 0 : parts.front().offset; }
};

struct LaidRef {
  AllocId alloc;
  const RefLayout* layout = nullptr;
  std::vector<std::int64_t> origin;  // along each axis of its buffer

  // The part that contains a rectangle of logical positions; null if none contains it whole. The
  // search starts at the part with index `likely`.
  [[nodiscard]] const RefLayout::Part* find(const Span& span, std::size_t likely = 0) const;
  // The logical positions of all parts.
  [[nodiscard]] std::vector<Span> spans() const;
  [[nodiscard]] std::int64_t elements() const;
};

struct WordsHash {
  std::size_t operator()(const std::vector<std::int32_t>& words) const;
};

// The layouts of a plan's references, each computed once.
class RefLayouts {
 public:
  // Requires: both outlive this.
  RefLayouts(const Plan& plan, const Blocks& blocks);

  [[nodiscard]] LaidRef of(const Ref& ref);
  // The layout of a whole home.
  [[nodiscard]] const LaidRef& of_home(AllocId home);
  // The single rectangle of a reference; none if it has several.
  [[nodiscard]] std::optional<Place> place_of(const Ref& ref);

  // The elements along its axis that one step of a digit spans; 0 if the axis' blocks have unequal
  // lengths or are permuted.
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
  std::vector<std::size_t> axis_counts_;  // by buffer, including opaque dimensions
  std::vector<int> buffers_;              // by allocation, like kinds_
  std::vector<std::int32_t> kinds_;       // of buffer and held digits
  std::vector<std::int32_t> key_;         // of the current reference
  std::unordered_map<std::vector<std::int32_t>, RefLayout, WordsHash> layouts_;
  std::map<std::vector<std::int64_t>, std::int32_t> shapes_;
  std::map<AllocId, LaidRef> homes_;
};

}  // namespace harpe::launch
