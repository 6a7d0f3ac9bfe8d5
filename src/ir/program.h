#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ir/dtype.h"
#include "ir/scalar.h"
#include "leaves/leaf.h"

namespace harpe {

// The program: what is computed (commir.md 2.1). A *template* has parameters (`param seq = 4096`)
// and expressions over them; a *ground* program (see instantiate) has none: every axis size is one
// integer, every dtype is fixed, every conditional mask is resolved. All stages after `ops` and the
// parser take ground programs.

// `param heads = 32`, `param causal : bool = false`, `param dtype : dtype = bf16`.
// Without a kind a parameter is an integer; its default may be another parameter's name.
struct Param {
  std::string name;
  std::string kind;  // "" (integer), "bool", "dtype", "float"
  Scalar value;
  friend bool operator==(const Param&, const Param&) = default;
};

// `axis Sq = 65536 grain 128`, `axis C = dyn 4096 of E grain 128`.
struct Axis {
  std::string name;
  Poly size;
  bool dynamic = false;
  std::string of;  // the owner of this ragged axis, or ""
  std::int64_t align = 1;
  friend bool operator==(const Axis&, const Axis&) = default;
};

// One dimension of a buffer: an axis, a row-major product of axes, or an opaque extent.
using Dim = std::variant<std::string, std::vector<std::string>, std::int64_t>;

enum class Role : std::uint8_t { In, Out, Temp };

struct Buffer {
  std::string name;
  DType dtype = DType::F32;
  std::string dtype_param;  // in a template: the parameter that names the dtype; "" when ground
  std::vector<Dim> dims;
  Role role = Role::In;
  // In a template: the parameter without which the input does not exist, as for a mask; or "".
  std::string condition = {};
  friend bool operator==(const Buffer&, const Buffer&) = default;
};

// A runtime partial bijection between expert slots and token choices (commir.md 8).
struct Route {
  std::string name;
  std::vector<std::string> slots;    // (E, C)
  std::vector<std::string> choices;  // (T, Kc)
  std::string by;
  std::string policy = "exact";  // exact, drop, pad
  std::optional<Call> load;
  friend bool operator==(const Route&, const Route&) = default;
};

struct LeafDecl {
  std::string name;
  std::optional<Poly> flops;
  std::optional<Poly> bytes;
  std::optional<std::string> kernel;
  friend bool operator==(const LeafDecl&, const LeafDecl&) = default;
};

using Decl = std::variant<Axis, Buffer, Route, LeafDecl>;

// `X`, `X[T=R.T]`, `B[M=K]`: a buffer indexed by its own axis names, some of them renamed.
struct Rename {
  std::string axis;    // of the buffer
  std::string source;  // an axis of the nest, or a route's name
  std::string member;  // of the route, or ""
  friend bool operator==(const Rename&, const Rename&) = default;
};
struct Access {
  std::string buffer;
  std::vector<Rename> renames;
  friend bool operator==(const Access&, const Access&) = default;
};

// `where causal(Sq, Skv) if causal`. Some masks are predicates on logical positions, aligned at the
// last query and the last key: d = k - q - (|K| - |Q|) is 0 where a query meets its own key.
//   causal(Q, K)      seen iff d <= 0
//   window(Q, K, n)   seen iff -n < d <= 0: the n latest keys, the query's own included
//   prefix(Q, K, n)   every query sees the first n keys, whatever the masks above hide
// Others depend on data: integers that the leaf reads like an operand; b is the batch entry:
//   doc(Q, K, seg)    seen iff seg[b, q] = seg[b, k]: documents packed into one sequence
//   length(K, len)    seen iff k < len[b]
//   paged(K, n, tab)  keys are stored in pages of n slots: slot p * n + r holds key i * n + r if
//                     tab[b, i] = p, and a `length` mask counts keys, not slots. Slots of a page
//                     that the table lacks hold no key; an entry of -1 is a page without slots.
// A key is visible if every mask on data shows it, and if all masks by position except `prefix`
// show it or `prefix` does.
struct Mask {
  Call call;
  // In a template: the parameter that switches it on, a bool or an integer other than 0; or "".
  std::string condition;
  friend bool operator==(const Mask&, const Mask&) = default;
};

struct Stmt {
  std::vector<Access>
      targets;  // several targets share one monoid; under lse they are one state (o, l)
  Monoid monoid = Monoid::Store;
  std::string leaf;
  std::vector<Access> operands;
  std::vector<std::pair<std::string, Scalar>> attrs;
  std::vector<Mask> masks;
  friend bool operator==(const Stmt&, const Stmt&) = default;
};

struct Nest {
  std::string name;
  std::vector<std::string> over;   // iteration space: product of these axes
  std::vector<std::string> whole;  // axes inside the leaf, never split in this nest
  std::vector<std::string> seq;    // axes with `for` only: never `par`, never skewed
  std::vector<Stmt> stmts;
  friend bool operator==(const Nest&, const Nest&) = default;
};

struct Program {
  std::string name;
  std::vector<Param> params;
  std::vector<Decl> decls;  // in the order written
  std::vector<Nest> nests;
  // `given nest …`: how some inputs follow from other inputs if the caller does not give them. The
  // program may rely on these equations; no rank computes them (see preparation_of).
  std::vector<Nest> given = {};
  friend bool operator==(const Program&, const Program&) = default;
};

[[nodiscard]] const Axis* find_axis(const Program& program, std::string_view name);
[[nodiscard]] const Buffer* find_buffer(const Program& program, std::string_view name);
[[nodiscard]] const Route* find_route(const Program& program, std::string_view name);
[[nodiscard]] const LeafDecl* find_leaf(const Program& program, std::string_view name);
[[nodiscard]] const Nest* find_nest(const Program& program, std::string_view name);
[[nodiscard]] std::vector<const Axis*> axes_of(const Program& program);
[[nodiscard]] std::vector<const Buffer*> buffers_of(const Program& program);

// A numeric attribute of the leaf, as in `rms_scale(x, s; eps=0.001)`. Requires: ground.
[[nodiscard]] double attribute_of(const Stmt& stmt, std::string_view name, double otherwise);

// The program that computes the inputs written by `given` nests: they are its outputs, the other
// inputs are its inputs. For templates and ground programs.
[[nodiscard]] Program preparation_of(const Program& program);

// The axes a buffer is indexed by, product dimensions flattened, in dimension order.
[[nodiscard]] std::vector<std::string> axis_names(const Buffer& buffer);

[[nodiscard]] bool is_ground(const Program& program);
// Requires: ground. The axis' number of elements.
[[nodiscard]] std::int64_t size_of(const Axis& axis);
// Requires: ground. The whole (global) shape, with product dimensions multiplied out.
[[nodiscard]] std::vector<std::int64_t> shape_of(const Program& program, const Buffer& buffer);

[[nodiscard]] std::string_view print(Monoid monoid);  // "" for Store
[[nodiscard]] std::optional<Monoid> parse_monoid(std::string_view text);
[[nodiscard]] std::string_view print(Role role);
[[nodiscard]] std::optional<Role> parse_role(std::string_view text);

}  // namespace harpe
