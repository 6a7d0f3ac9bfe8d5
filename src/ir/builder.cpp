#include "ir/builder.h"

#include <algorithm>

#include "ir/program_check.h"
#include "support/check.h"

namespace harpe {
namespace {

std::vector<std::string> names_of(std::initializer_list<Index> axes) {
  std::vector<std::string> names;
  for (const Index& axis : axes) names.push_back(axis.name);
  return names;
}

bool is_sum(const Poly& poly) {
  return std::ranges::any_of(poly.rest, [](const Poly::Term& term) { return term.op == '+'; });
}

Size join(Size left, char op, const Size& right) {
  left.poly.rest.push_back({.op = op, .value = right.poly.first});
  left.poly.rest.insert(left.poly.rest.end(), right.poly.rest.begin(), right.poly.rest.end());
  return left;
}

Array renamed(Array array, Rename rename) {
  array.access.renames.push_back(std::move(rename));
  return array;
}

std::vector<Access> accesses_of(std::initializer_list<Array> arrays) {
  std::vector<Access> accesses;
  for (const Array& array : arrays) accesses.push_back(array.access);
  return accesses;
}

Size parameter(const std::string& name) { return Size(Poly{.first = Name{name}, .rest = {}}); }

}  // namespace

Size operator*(Size left, const Size& right) {
  HP_CHECK(!is_sum(left.poly) && !is_sum(right.poly), "a product of sums has no text in CommIR");
  return join(std::move(left), '*', right);
}

Size operator/(Size left, const Size& right) {
  HP_CHECK(!is_sum(left.poly) && right.poly.rest.empty(), "`/` divides by one number or name");
  return join(std::move(left), '/', right);
}

Size operator+(Size left, const Size& right) { return join(std::move(left), '+', right); }

std::vector<std::string> Extent::names(std::initializer_list<Index> axes) { return names_of(axes); }

Array Array::at(const Index& axis, const Route& route) const {
  return renamed(*this, {.axis = axis.name, .source = route.name, .member = axis.name});
}

Array Array::at(const Index& axis, const Index& instead) const {
  return renamed(*this, {.axis = axis.name, .source = instead.name, .member = ""});
}

NestBuilder& NestBuilder::over(std::initializer_list<Index> axes) {
  nest().over = names_of(axes);
  return *this;
}
NestBuilder& NestBuilder::whole(std::initializer_list<Index> axes) {
  nest().whole = names_of(axes);
  return *this;
}
NestBuilder& NestBuilder::seq(std::initializer_list<Index> axes) {
  nest().seq = names_of(axes);
  return *this;
}

NestBuilder& NestBuilder::add(Monoid monoid, Arrays targets, const std::string& leaf,
                              Arrays operands, const Attributes& attributes) {
  nest().stmts.push_back({.targets = accesses_of(targets),
                          .monoid = monoid,
                          .leaf = leaf,
                          .operands = accesses_of(operands),
                          .attrs = attributes,
                          .masks = {}});
  return *this;
}
NestBuilder& NestBuilder::store(Arrays targets, const std::string& leaf, Arrays operands,
                                const Attributes& attributes) {
  return add(Monoid::Store, targets, leaf, operands, attributes);
}
NestBuilder& NestBuilder::sum(Arrays targets, const std::string& leaf, Arrays operands,
                              const Attributes& attributes) {
  return add(Monoid::Sum, targets, leaf, operands, attributes);
}
NestBuilder& NestBuilder::max(Arrays targets, const std::string& leaf, Arrays operands,
                              const Attributes& attributes) {
  return add(Monoid::Max, targets, leaf, operands, attributes);
}
NestBuilder& NestBuilder::lse(Arrays targets, const std::string& leaf, Arrays operands,
                              const Attributes& attributes) {
  return add(Monoid::Lse, targets, leaf, operands, attributes);
}

NestBuilder& NestBuilder::mask(const std::string& function, std::vector<Scalar> args,
                               const std::string& condition) {
  HP_CHECK(!nest().stmts.empty(), "a mask belongs to a statement");
  nest().stmts.back().masks.push_back(
      {.call = {.function = function, .args = std::move(args)}, .condition = condition});
  return *this;
}

Size ProgramBuilder::integer(const std::string& name, const Size& value) {
  HP_CHECK(value.poly.rest.empty(), "a default is a number or an earlier parameter");
  program_.params.push_back({.name = name, .kind = "", .value = value.poly.first});
  return parameter(name);
}

std::string ProgramBuilder::option(const std::string& name, bool value) {
  program_.params.push_back(
      {.name = name, .kind = "bool", .value = Name{value ? "true" : "false"}});
  return name;
}

Size ProgramBuilder::number(const std::string& name, double value) {
  program_.params.push_back({.name = name, .kind = "float", .value = value});
  return parameter(name);
}

Type ProgramBuilder::type(const std::string& name, DType value) {
  program_.params.push_back(
      {.name = name, .kind = "dtype", .value = Name{std::string(print(value))}});
  return Type(name);
}

Index ProgramBuilder::axis(const std::string& name, const Size& size, std::int64_t align) {
  program_.decls.emplace_back(
      Axis{.name = name, .size = size.poly, .dynamic = false, .of = "", .align = align});
  return {name};
}

Index ProgramBuilder::dynamic_axis(const std::string& name, const Size& size, std::int64_t align) {
  program_.decls.emplace_back(
      Axis{.name = name, .size = size.poly, .dynamic = true, .of = "", .align = align});
  return {name};
}

Index ProgramBuilder::ragged_axis(const std::string& name, const Size& size, const Index& owner,
                                  std::int64_t align) {
  program_.decls.emplace_back(
      Axis{.name = name, .size = size.poly, .dynamic = true, .of = owner.name, .align = align});
  return {name};
}

Array ProgramBuilder::buffer(const std::string& name, const Type& type, Extents dims, Role role,
                             const std::string& condition) {
  Buffer buffer{.name = name,
                .dtype = type.dtype,
                .dtype_param = type.parameter,
                .dims = {},
                .role = role,
                .condition = condition};
  for (const Extent& extent : dims) buffer.dims.push_back(extent.dim);
  program_.decls.emplace_back(std::move(buffer));
  return {.access = {.buffer = name, .renames = {}}};
}

Array ProgramBuilder::input(const std::string& name, const Type& type, Extents dims,
                            const std::string& condition) {
  return buffer(name, type, dims, Role::In, condition);
}
Array ProgramBuilder::output(const std::string& name, const Type& type, Extents dims) {
  return buffer(name, type, dims, Role::Out, "");
}
Array ProgramBuilder::temporary(const std::string& name, const Type& type, Extents dims) {
  return buffer(name, type, dims, Role::Temp, "");
}

Route ProgramBuilder::route(const std::string& name, std::initializer_list<Index> slots,
                            std::initializer_list<Index> choices, const Array& index,
                            const std::string& policy, std::optional<Call> load) {
  Route route{.name = name,
              .slots = names_of(slots),
              .choices = names_of(choices),
              .by = index.access.buffer,
              .policy = policy,
              .load = std::move(load)};
  program_.decls.emplace_back(route);
  return route;
}

void ProgramBuilder::leaf_cost(const std::string& leaf, const Size& flops) {
  this->leaf({.name = leaf, .flops = flops.poly, .bytes = std::nullopt, .kernel = std::nullopt});
}

void ProgramBuilder::leaf(LeafDecl leaf) { program_.decls.emplace_back(std::move(leaf)); }

NestBuilder ProgramBuilder::add_nest(std::vector<Nest>& nests, const std::string& name) {
  nests.push_back({.name = name, .over = {}, .whole = {}, .seq = {}, .stmts = {}});
  return NestBuilder(nests, nests.size() - 1);
}

Checked<Program> ProgramBuilder::take() const {
  HP_REQUIRE_OK(check_items(program_));
  return program_;
}

}  // namespace harpe
