#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/program.h"
#include "machine/fence.h"
#include "machine/mesh.h"

namespace harpe {

// CommIR's declarative normal form: where, when and how (commir.md 2.3). What the search produces,
// the cache stores and a plan file carries. Semantics: commir.md section 4.

// `refine gpu = ring:4 * uly:2`: one mesh axis seen as several, major first.
struct Refine {
  std::string axis;
  std::vector<MeshAxis> parts;
  friend bool operator==(const Refine&, const Refine&) = default;
};

// One digit of an axis. Without an extent it is `_`, the remainder: at most one per axis, last, and
// collapsed to one block.
struct Digit {
  std::string name;
  std::optional<std::int64_t> extent;
  friend bool operator==(const Digit&, const Digit&) = default;
};

// `split Sq = q0:8 * q1:_`: the digits of an axis, most significant first.
struct Split {
  std::string axis;
  std::vector<Digit> digits;
  friend bool operator==(const Split&, const Split&) = default;
};

// `layout Sq zigzag(q0, qh)`: digit values -> logical position; default is mixed radix.
struct Layout {
  std::string axis;
  Call map;  // zigzag(d, h), stripe(d), table(name), slab(c, t, ...)
  friend bool operator==(const Layout&, const Layout&) = default;
};

struct Placement {
  std::string digit;
  MeshRef axes;
  friend bool operator==(const Placement&, const Placement&) = default;
};
struct PartialHome {
  Monoid monoid = Monoid::Sum;
  MeshRef axes;
  friend bool operator==(const PartialHome&, const PartialHome&) = default;
};
// `place K[k0@node, k1@gpu] partial sum@tp`: a buffer's home. Axes not named replicate it.
struct Place {
  std::string buffer;
  std::vector<Placement> at;
  std::vector<PartialHome> partial;
  friend bool operator==(const Place&, const Place&) = default;
};

struct Par {
  std::string digit;
  MeshRef axes;
  friend bool operator==(const Par&, const Par&) = default;
};
// `for k0 skew gpu + 1 rev`. A skew term is a mesh axis or the digit of an enclosing loop.
struct For {
  std::string digit;
  std::vector<std::string> skew;
  std::int64_t offset = 0;
  bool reverse = false;
  friend bool operator==(const For&, const For&) = default;
};

enum class MoveKind : std::uint8_t { Stage, Drain };
enum class How : std::uint8_t { Bulk, Relay, Direct, Inline, OneShot };
enum class Initiator : std::uint8_t { Src, Dst };
enum class Via : std::uint8_t { Ce, Sm, Tma, Nccl, Proxy, Ibgda, Multimem };
enum class Signal : std::uint8_t { Event, Flag, Counter, Batched };

// `stage K over gpu relay by src depth 2 via ce signal event`. The accessors give the defaults of
// missing attributes.
struct Move {
  MoveKind kind = MoveKind::Stage;
  std::string buffer;
  MeshRef over;
  How how = How::Bulk;
  std::optional<Initiator> by;
  std::optional<std::int64_t> depth;
  std::optional<std::string> chunk;  // a digit
  std::optional<DType> wire;
  std::optional<Via> via;
  std::optional<Signal> signal;
  std::optional<Fence> fence;
  std::optional<std::int64_t> sm;
  friend bool operator==(const Move&, const Move&) = default;

  [[nodiscard]] Initiator initiator() const {  // by default a stage is pulled and a drain is pushed
    return by.value_or(kind == MoveKind::Stage ? Initiator::Dst : Initiator::Src);
  }
  [[nodiscard]] std::int64_t slots() const { return depth.value_or(1); }
  [[nodiscard]] Via transport() const { return via.value_or(Via::Ce); }
  [[nodiscard]] Fence fence_policy() const { return fence.value_or(Fence::PerPut); }
};

struct LeafChoice {
  std::optional<std::string> kernel;
  std::optional<std::int64_t> sm;
  std::optional<std::string> chunk;  // a digit visited inside the kernel
  std::optional<Call> order;  // skew(d, a): visiting order of another digit inside the kernel
  friend bool operator==(const LeafChoice&, const LeafChoice&) = default;
};

using NestItem = std::variant<Par, For, Move>;

// Items in order; a move runs inside the loops above it.
struct NestForm {
  std::string nest;
  std::vector<NestItem> items;
  LeafChoice leaf;
  friend bool operator==(const NestForm&, const NestForm&) = default;
};

struct Fuse {
  std::string name;
  std::vector<std::string> nests;
  bool persistent = false;
  std::optional<std::int64_t> sm;
  std::optional<std::int64_t> warps;
  friend bool operator==(const Fuse&, const Fuse&) = default;
};

struct NormalForm {
  std::string name;
  std::string program;
  std::string mesh;
  std::vector<Refine> refines;
  std::vector<Split> splits;
  std::vector<Layout> layouts;
  std::vector<Place> places;
  std::vector<NestForm> nests;
  std::vector<Fuse> fuses;
  friend bool operator==(const NormalForm&, const NormalForm&) = default;
};

[[nodiscard]] std::string_view print(MoveKind kind);
[[nodiscard]] std::string_view print(How how);
[[nodiscard]] std::string_view print(Initiator by);
[[nodiscard]] std::string_view print(Via via);
[[nodiscard]] std::string_view print(Signal signal);
[[nodiscard]] std::optional<How> parse_how(std::string_view text);
[[nodiscard]] std::optional<Initiator> parse_initiator(std::string_view text);
[[nodiscard]] std::optional<Via> parse_via(std::string_view text);
[[nodiscard]] std::optional<Signal> parse_signal(std::string_view text);

[[nodiscard]] const Split* find_split(const NormalForm& form, std::string_view axis);
[[nodiscard]] const Place* find_place(const NormalForm& form, std::string_view buffer);
[[nodiscard]] const NestForm* find_nest(const NormalForm& form, std::string_view nest);

// The mesh with the normal form's `refine` lines applied, each in place of the axis that it
// refines.
// Requires: the refinements were checked (F-codes of Blocks::make).
[[nodiscard]] Mesh refined(const Mesh& mesh, const NormalForm& form);

}  // namespace harpe
