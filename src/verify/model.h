#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/form.h"
#include "ir/program.h"
#include "machine/mesh.h"
#include "support/diag.h"
#include "support/ids.h"

// The verifier's own model of (program, mesh, normal form), written from commir.md alone (D1, D12,
// sections 2.3 and 4.2). It shares nothing with ir/blocks.h: if one of the two misreads a layout, a
// block start or a home, the terms of the plan and of the program differ.
namespace harpe::verifier {

// The name of the work that a time limit ends.
constexpr std::string_view kProof = "the proof of the plan";

// kMaxBlocks limits the blocks of a buffer and of an iteration space that are enumerated.
// kMaxIterations limits iteration spaces that are only counted.
constexpr std::int64_t kMaxBlocks = std::int64_t{1} << 24;
constexpr std::int64_t kMaxIterations = std::int64_t{1} << 60;

struct DigitModel {
  std::string name;
  int axis = 0;
  std::int32_t extent = 1;
  int source = -1;  // of a slot with `slab`: the token digit that it equals
};

// A runtime partial bijection between slots (expert, slot) and choices (token, choice): four axes
// (commir.md 8). Which slot meets which choice is unknown. Known is that a slab's digit equals its
// source digit.
struct RouteModel {
  std::string name;
  int expert = 0;
  int slot = 0;
  int token = 0;
  int choice = 0;
};

// Restricts a transfer to what iterations with this value of the digit need of its blocks.
struct Cut {
  std::int32_t digit = -1;  // -1: whole blocks
  std::int32_t value = 0;
  [[nodiscard]] bool is_whole() const { return digit < 0; }
  friend bool operator==(const Cut&, const Cut&) = default;
};

// Blocks are numbered in digit order. The axis' layout determines where their elements lie.
struct AxisModel {
  std::string name;
  std::int64_t size = 1;
  std::vector<int> digits;
  std::int64_t blocks = 1;
  std::vector<std::int64_t> begin;  // per block: its first element
  std::vector<std::int64_t> end;
  bool has_empty = false;
};

// A list of digits read as one mixed-radix number, most significant first.
struct Radix {
  std::vector<int> digits;  // into Model::digits
  std::vector<std::int32_t> extents;
  std::vector<std::int64_t> strides;
  std::int64_t blocks = 1;
};

// Maps a point of a Radix to an axis' block: the scalar product with these strides.
struct AxisView {
  int axis = 0;
  std::vector<std::int64_t> strides;  // per digit of the Radix; 0 for other axes' digits
};

struct BufferModel {
  std::string name;
  DType dtype = DType::F32;
  Role role = Role::In;
  Radix radix;
  std::vector<AxisView> axes;
  std::int64_t opaque = 1;             // product of the opaque extents
  std::vector<bool> empty;             // per block (D12)
  std::vector<std::vector<int>> home;  // per digit: the mesh axes it is placed on, major first
  std::vector<int> partial;            // mesh axes along which homes keep partial states
  [[nodiscard]] bool is_empty(std::int64_t block) const {
    return empty[static_cast<std::size_t>(block)];
  }
};

// The blocks of one buffer that a point of an iteration space accesses: `strides` · point plus each
// of `offsets` (all values of the digits that the point does not fix).
struct AccessModel {
  int buffer = 0;
  bool routed = false;
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> offsets;
};

// Which keys the masks of a statement show, by logical position. Query i sees key i + `diagonal`,
// the `reach` - 1 keys before that one, and always the first `prefix` keys.
struct MaskModel {
  AxisView queries;
  AxisView keys;
  std::int64_t diagonal = 0;
  std::optional<std::int64_t> reach;  // none: unlimited
  std::int64_t prefix = 0;
};

struct StatementModel {
  int nest = 0;
  int index = 0;  // in the nest
  Monoid monoid = Monoid::Store;
  std::vector<AccessModel> operands;  // including what masks read
  std::vector<AccessModel> targets;
  std::optional<MaskModel> mask;
  // Under `lse` the targets (o, l) are one state. `partner`: per block of o the block of l that
  // belongs to it.
  bool tied = false;
  std::vector<std::int32_t> partner;
};

struct NestModel {
  std::string name;
  // Digits of the `over` axes, in that order. For a nest over the choices of its route, the choice
  // axis stands for the experts chosen: a block is then (tokens) x (experts).
  Radix space;
  bool runs_experts = false;
  int route = -1;  // the route of its operands, an index into Model::routes
  std::vector<AxisView> axes;
  int first_statement = 0;  // in Model::statements
  int statement_count = 0;
};

// Per axis: elements, ascending, at which a block is cut in addition to block starts.
using AxisCuts = std::vector<std::vector<std::int64_t>>;

class Model {
 public:
  // Errors: M1xx, P0xx, V201 the form does not fit its program and mesh, V202 the verifier does not
  // support something, V203 too many blocks.
  [[nodiscard]] static Checked<Model> make(const Program& program, const Mesh& mesh,
                                           const NormalForm& form, const AxisCuts& cuts = {});

  std::vector<MeshAxis> mesh;  // refinements applied
  std::int64_t ranks = 1;
  std::vector<DigitModel> digits;
  std::vector<AxisModel> axes;
  std::vector<RouteModel> routes;
  std::vector<BufferModel> buffers;
  std::vector<NestModel> nests;
  std::vector<StatementModel> statements;  // in program order

  [[nodiscard]] int find_buffer(std::string_view name) const;  // or -1
  [[nodiscard]] int find_nest(std::string_view name) const;    // or -1
  [[nodiscard]] int find_digit(std::string_view name) const;   // or -1
  [[nodiscard]] std::int64_t coordinate(RankId rank, std::span<const int> mesh_axes) const;
  // Whether `rank` has this block in its home of the buffer.
  [[nodiscard]] bool is_home(int buffer, RankId rank, std::int64_t block) const;
  // Whether this iteration has no elements (D12).
  [[nodiscard]] bool is_empty(const NestModel& nest, std::span<const std::int32_t> point) const;
  // Whether a mask hides all of this iteration. Requires: it is not empty.
  [[nodiscard]] bool is_masked(const StatementModel& statement,
                               std::span<const std::int32_t> point) const;
};

[[nodiscard]] inline std::int64_t product(std::span<const std::int64_t> strides,
                                          std::span<const std::int32_t> point) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < strides.size(); ++i) sum += strides[i] * point[i];
  return sum;
}

// The digit values of one block, or of one iteration.
[[nodiscard]] std::vector<std::int32_t> point_of(const Radix& radix, std::int64_t block);

// Advances to the next point of a box, last digit fastest; false after the last. `Box` is any list
// of ranges with `lo` and `hi`; `point` starts at every `lo`. Requires: no range is empty.
template <class Box>
[[nodiscard]] bool next_point(const Box& box, std::vector<std::int32_t>& point) {
  for (std::size_t i = point.size(); i-- > 0;) {
    if (++point[i] < box[i].hi) return true;
    point[i] = box[i].lo;
  }
  return false;
}

}  // namespace harpe::verifier
