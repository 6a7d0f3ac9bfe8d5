#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "ir/program.h"
#include "support/diag.h"

namespace harpe {

// Builds programs in C++ with everything a `.op` file can state: parameters, axes, buffers, routes,
// costs, masks, conditions. The result is an ordinary template: it prints, parses and instantiates
// like a parsed one.
//
//   ProgramBuilder p("gemm");
//   const Size m = p.integer("m", 4096), n = p.integer("n", 4096), k = p.integer("k", 4096);
//   const Type type = p.type("dtype", DType::BF16);
//   const Index M = p.axis("M", m, 128), N = p.axis("N", n, 128), K = p.axis("K", k);
//   const Array a = p.input("a", type, {M, K}), b = p.input("b", type, {K, N});
//   const Array c = p.output("c", type, {M, N});
//   p.nest("mm").over({M, N, K}).sum({c}, "matmul", {a, b});
//   const Checked<Program> program = p.take();

// An integer expression over parameters, or a cost over axes: `heads/kv_heads`, `2*M*N*K`.
struct Size {
  Poly poly;
  Size(std::int64_t value) : poly{.first = value, .rest = {}} {}  // NOLINT: 4096 is a size
  explicit Size(Poly p) : poly(std::move(p)) {}
};
// Requires for `*` and `/`: the right side is not a sum, since CommIR has no parentheses
// (HP_CHECK).
[[nodiscard]] Size operator*(Size left, const Size& right);
[[nodiscard]] Size operator/(Size left, const Size& right);
[[nodiscard]] Size operator+(Size left, const Size& right);

// An axis by its name; also a factor of a cost.
struct Index {
  std::string name;
  operator Size() const { return Size(Poly{.first = Name{name}, .rest = {}}); }  // NOLINT
};

// The type of a buffer: a fixed one, or a parameter.
struct Type {
  DType dtype = DType::F32;
  std::string parameter;
  Type(DType fixed) : dtype(fixed) {}  // NOLINT: a type is a type
  explicit Type(std::string name) : parameter(std::move(name)) {}
};

// One dimension: an axis, a row-major product of axes, or an opaque extent.
struct Extent {
  Dim dim;
  Extent(const Index& axis) : dim(axis.name) {}                          // NOLINT
  Extent(std::int64_t opaque) : dim(opaque) {}                           // NOLINT
  Extent(std::initializer_list<Index> product) : dim(names(product)) {}  // NOLINT

 private:
  static std::vector<std::string> names(std::initializer_list<Index> axes);
};

// A buffer as a statement accesses it. `x.at(T, R)` reaches T through route R; `x.at(M, K)` runs
// along K in place of M.
struct Array {
  Access access;
  [[nodiscard]] Array at(const Index& axis, const Route& route) const;
  [[nodiscard]] Array at(const Index& axis, const Index& instead) const;
};

// A nest under construction; refers to its builder.
class NestBuilder {
 public:
  NestBuilder& over(std::initializer_list<Index> axes);
  NestBuilder& whole(std::initializer_list<Index> axes);
  NestBuilder& seq(std::initializer_list<Index> axes);

  using Arrays = std::initializer_list<Array>;
  using Attributes = std::vector<std::pair<std::string, Scalar>>;
  // `targets = leaf(operands; attributes)`, and the same for the other monoids.
  NestBuilder& store(Arrays targets, const std::string& leaf, Arrays operands,
                     const Attributes& attributes = {});
  NestBuilder& sum(Arrays targets, const std::string& leaf, Arrays operands,
                   const Attributes& attributes = {});
  NestBuilder& max(Arrays targets, const std::string& leaf, Arrays operands,
                   const Attributes& attributes = {});
  NestBuilder& lse(Arrays targets, const std::string& leaf, Arrays operands,
                   const Attributes& attributes = {});
  // A mask of the statement added last: `mask("window", {Name{"Sq"}, Name{"Skv"}, Name{"n"}},
  // "n")`.
  NestBuilder& mask(const std::string& function, std::vector<Scalar> args,
                    const std::string& condition = "");

 private:
  friend class ProgramBuilder;
  NestBuilder(std::vector<Nest>& nests, std::size_t place) : nests_(nests), place_(place) {}
  NestBuilder& add(Monoid monoid, Arrays targets, const std::string& leaf, Arrays operands,
                   const Attributes& attributes);
  [[nodiscard]] Nest& nest() const { return nests_[place_]; }

  std::vector<Nest>& nests_;
  std::size_t place_;
};

class ProgramBuilder {
 public:
  explicit ProgramBuilder(std::string name) { program_.name = std::move(name); }

  Size integer(const std::string& name, const Size& value);  // a number, or an earlier parameter
  // Returns its name, for use in conditions.
  std::string option(const std::string& name, bool value);
  Size number(const std::string& name, double value);
  Type type(const std::string& name, DType value);

  Index axis(const std::string& name, const Size& size, std::int64_t align = 1);
  // `dyn size`: the caller sets the length at run time, at most `size`.
  Index dynamic_axis(const std::string& name, const Size& size, std::int64_t align = 1);
  // `dyn size of owner`: each position of the owner has its own length, at most `size`.
  Index ragged_axis(const std::string& name, const Size& size, const Index& owner,
                    std::int64_t align = 1);

  using Extents = std::initializer_list<Extent>;
  Array input(const std::string& name, const Type& type, Extents dims,
              const std::string& condition = "");
  Array output(const std::string& name, const Type& type, Extents dims);
  Array temporary(const std::string& name, const Type& type, Extents dims);

  // `route name : (slots) <- (choices) by index policy load`.
  Route route(const std::string& name, std::initializer_list<Index> slots,
              std::initializer_list<Index> choices, const Array& index,
              const std::string& policy = "exact", std::optional<Call> load = std::nullopt);
  void leaf_cost(const std::string& leaf, const Size& flops);
  void leaf(LeafDecl leaf);  // also its bytes and its kernel

  NestBuilder nest(const std::string& name) { return add_nest(program_.nests, name); }
  NestBuilder given(const std::string& name) { return add_nest(program_.given, name); }

  // Errors: those of check_items, which a parser reports for the same program.
  [[nodiscard]] Checked<Program> take() const;

 private:
  Array buffer(const std::string& name, const Type& type, Extents dims, Role role,
               const std::string& condition);
  static NestBuilder add_nest(std::vector<Nest>& nests, const std::string& name);

  Program program_;
};

}  // namespace harpe
