#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/form.h"
#include "ir/program.h"
#include "machine/mesh.h"
#include "support/diag.h"
#include "support/ids.h"

namespace harpe {

// The index algebra of one (ground program, mesh, normal form): names become indices, blocks become
// integers (commir.md D1, D12, 2.3). Everything that asks which rank holds which block uses it,
// except the verifier, which has its own model (verify/model.h).
//
//   digit value  0 .. extent-1; the remainder digit `_` has extent 1 (a block is its smallest unit)
//   block        of an axis or a buffer: mixed radix number of its digits' values, first most
//   significant Region       of a buffer or an iteration space: for each digit one value, or kAll
constexpr std::int32_t kAll = -1;
using Region = std::vector<std::int32_t>;
using BlockId = std::int64_t;

// [begin, end) along one axis, in elements.
struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] std::int64_t size() const { return end - begin; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

struct DigitTable {
  std::string name;
  int axis = 0;  // index into Blocks::axes
  std::int32_t extent = 1;
};

struct AxisTable {
  std::string name;
  std::int64_t size = 1;
  std::vector<int> digits;                 // indices into Blocks::digits, most significant first
  std::int64_t blocks = 1;                 // product of their extents
  std::vector<std::int64_t> starts;        // logical block -> first element; blocks + 1 entries
  std::vector<std::pair<int, int>> slabs;  // `slab(c0, t0)`: own digit c0 is source digit t0
  std::vector<std::int64_t> logical;  // block (digit order) -> logical block, by the axis' layout
};

struct DimTable {
  std::vector<int> axes;  // row-major product; empty for an opaque extent
  std::int64_t opaque = 1;
};

struct BufferTable {
  std::string name;
  DType dtype = DType::F32;
  Role role = Role::In;
  std::vector<DimTable> dims;
  std::vector<int> axes;    // flattened over dims
  std::vector<int> digits;  // flattened over axes: the digits of a Region of this buffer
  std::int64_t blocks = 1;
  std::vector<std::int64_t> strides;  // per digit: the BlockId difference of one step
  std::vector<std::vector<int>>
      home;                       // per digit: the mesh axes it is placed on (major first) or none
  std::vector<int> partial_axes;  // mesh axes along which the home keeps partial states
};

class Blocks {
 public:
  // Requires: program is ground and well formed (check_program).
  // Errors: F1xx (names, digits, refinements, layouts, placements that cannot be).
  [[nodiscard]] static Checked<Blocks> make(const Program& program, const Mesh& mesh,
                                            const NormalForm& form);

  [[nodiscard]] const Mesh& mesh() const { return mesh_; }  // refinements applied
  [[nodiscard]] const std::vector<DigitTable>& digits() const { return digits_; }
  [[nodiscard]] const std::vector<AxisTable>& axes() const { return axes_; }
  [[nodiscard]] const std::vector<BufferTable>& buffers() const { return buffers_; }
  [[nodiscard]] int find_digit(std::string_view name) const;   // or -1
  [[nodiscard]] int find_axis(std::string_view name) const;    // or -1
  [[nodiscard]] int find_buffer(std::string_view name) const;  // or -1

  // Ranks and coordinates along mesh axes (indices into mesh().axes, major first).
  [[nodiscard]] std::int64_t ranks() const { return ranks_; }
  [[nodiscard]] std::int64_t extent(std::span<const int> mesh_axes) const;
  [[nodiscard]] std::int64_t coordinate(RankId rank, std::span<const int> mesh_axes) const;
  // The rank whose coordinate along `mesh_axes` is `value` mod extent, all others equal.
  [[nodiscard]] RankId with_coordinate(RankId rank, std::span<const int> mesh_axes,
                                       std::int64_t value) const;

  // Regions and blocks. `digits` is a BufferTable's or an iteration space's digit list.
  [[nodiscard]] Region home(int buffer, RankId rank) const;
  [[nodiscard]] std::vector<BlockId> blocks_in(std::span<const int> digits,
                                               const Region& region) const;
  [[nodiscard]] Region region_of(std::span<const int> digits, BlockId block) const;  // all pinned
  // The elements of an axis' block, in logical positions; empty blocks have size 0 (D12).
  [[nodiscard]] Interval interval(int axis, std::int64_t axis_block) const;
  // The block along `axis` that a fully pinned region selects; `digits` as above.
  [[nodiscard]] std::int64_t axis_block(int axis, std::span<const int> digits,
                                        std::span<const std::int32_t> values) const;
  // Elements in a buffer's block (product over axes and opaque extents); 0 iff the block is empty.
  [[nodiscard]] std::int64_t elements(int buffer, BlockId block) const;

 private:
  Mesh mesh_;
  std::int64_t ranks_ = 1;
  std::vector<std::int64_t> mesh_strides_;  // per mesh axis: ranks between neighbours
  std::vector<DigitTable> digits_;
  std::vector<AxisTable> axes_;
  std::vector<BufferTable> buffers_;
};

// The route a nest's operands go through, or null. A nest uses at most one (check_program).
[[nodiscard]] const Route* find_route_of(const Program& program, const Nest& nest);

// The digits of a nest's iteration space: those of its `over` axes, in that order. In a nest over
// the choices (T, Kc) of a route, the choice axis stands for the chosen experts, so its digits are
// E's (commir.md 8, route blocks).
[[nodiscard]] std::vector<int> iteration_digits(const Program& program, const Blocks& blocks,
                                                const Nest& nest);

// The intersection of two regions over the same digits; nullopt if they share no block.
[[nodiscard]] std::optional<Region> intersect(const Region& a, const Region& b);

}  // namespace harpe
