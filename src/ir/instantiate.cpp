#include "ir/instantiate.h"

#include <algorithm>
#include <set>

#include "ir/mask_contract.h"
#include "ir/program_check.h"
#include "ir/text.h"

namespace harpe {
namespace {

// Final values of parameters: no value names another parameter.
using Values = Bindings;

Checked<Ok> check_bindings_known(const Program& program, const Bindings& bindings) {
  std::vector<std::string> known;
  for (const Param& param : program.params) known.push_back(param.name);
  for (const auto& [name, value] : bindings) {
    if (std::ranges::find(known, name) != known.end()) continue;
    return make_diag(
        DiagCode::P101,
        {{"program", program.name}, {"name", name}, {"hint", suggestion(name, known)}});
  }
  return Ok{};
}

// Requires: check_param of every parameter, so a default names an earlier parameter of a matching
// kind.
Checked<Values> evaluate_params(const Program& program, const Bindings& bindings) {
  Values values;
  for (const Param& param : program.params) {
    const auto bound = bindings.find(param.name);
    Scalar value = bound == bindings.end() ? param.value : bound->second;
    if (!is_of_kind(value, param.kind)) {
      if (bound != bindings.end()) return wrong_kind(param, value);
      value = values.at(std::get<Name>(value).text);
    }
    const auto* const integer = std::get_if<std::int64_t>(&value);
    if (param.kind == "float" && integer != nullptr) value = static_cast<double>(*integer);
    values.insert_or_assign(param.name, std::move(value));
  }
  return values;
}

// One axis size, left to right: a sum of products, every intermediate result in 64 bits.
class SizeEvaluator {
 public:
  SizeEvaluator(const Axis& axis, const Values& values) : axis_(axis), values_(values) {}

  Checked<std::int64_t> evaluate() const {
    std::int64_t sum = 0;
    std::int64_t product = value_of(axis_.size.first);
    for (const Poly::Term& term : axis_.size.rest) {
      const std::int64_t operand = value_of(term.value);
      if (term.op == '+') {
        HP_TRY(sum, add(sum, product));
        product = operand;
      } else if (term.op == '*') {
        HP_TRY(product, multiply(product, operand));
      } else {
        HP_TRY(product, divide(product, operand));
      }
    }
    HP_TRY(const std::int64_t size, add(sum, product));
    if (size < 1 || size > kMaxAxisSize) return out_of_range(std::to_string(size));
    return size;
  }

 private:
  // Requires: check_decl, so a name is an integer parameter.
  [[nodiscard]] std::int64_t value_of(const Scalar& scalar) const {
    const auto* const name = std::get_if<Name>(&scalar);
    return std::get<std::int64_t>(name == nullptr ? scalar : values_.at(name->text));
  }

  [[nodiscard]] Diag out_of_range(const std::string& value) const {
    return make_diag(DiagCode::P103,
                     {{"name", axis_.name}, {"value", value}, {"limit", kMaxAxisSize}});
  }

  [[nodiscard]] Checked<std::int64_t> add(std::int64_t a, std::int64_t b) const {
    std::int64_t result = 0;
    if (!__builtin_add_overflow(a, b, &result)) return result;
    return out_of_range(std::to_string(a) + " + " + std::to_string(b));
  }

  [[nodiscard]] Checked<std::int64_t> multiply(std::int64_t a, std::int64_t b) const {
    std::int64_t result = 0;
    if (!__builtin_mul_overflow(a, b, &result)) return result;
    return out_of_range(std::to_string(a) + " * " + std::to_string(b));
  }

  [[nodiscard]] Checked<std::int64_t> divide(std::int64_t a, std::int64_t b) const {
    if (b == 0) return make_diag(DiagCode::P105, {{"name", axis_.name}, {"dividend", a}});
    if (b == -1) return multiply(a, -1);  // INT64_MIN / -1 overflows
    if (a % b == 0) return a / b;
    return make_diag(DiagCode::P104, {{"name", axis_.name},
                                      {"size", print(axis_.size)},
                                      {"dividend", a},
                                      {"divisor", b},
                                      {"remainder", a % b}});
  }

  const Axis& axis_;
  const Values& values_;
};

bool is_off(const std::string& condition, const Values& values) {
  if (condition.empty()) return false;
  const Scalar& value = values.at(condition);
  return value == Scalar(Name{"false"}) || value == Scalar(std::int64_t{0});
}

// The program without the masks and buffers that its parameters switch off, and without the axes
// that only such buffers have.
class Reduction {
 public:
  Reduction(const Program& program, const Values& values) : program_(program), values_(values) {}

  [[nodiscard]] Program run() const {
    Program out = program_;
    std::set<std::string> gone;
    for (const Buffer* const buffer : buffers_of(program_)) {
      if (!is_off(buffer->condition, values_)) continue;
      for (std::string& axis : axis_names(*buffer)) gone.insert(std::move(axis));
    }
    std::erase_if(out.decls, [&](const Decl& decl) {
      const auto* const buffer = std::get_if<Buffer>(&decl);
      return buffer != nullptr && is_off(buffer->condition, values_);
    });
    for (Decl& decl : out.decls) {
      if (auto* const buffer = std::get_if<Buffer>(&decl)) buffer->condition.clear();
    }
    for (std::vector<Nest>* const nests : {&out.nests, &out.given}) {
      for (Nest& nest : *nests) keep_masks(nest);
    }
    std::erase_if(gone, [&](const std::string& axis) { return is_used(out, axis); });
    drop_axes(out, gone);
    return out;
  }

 private:
  void keep_masks(Nest& nest) const {
    for (Stmt& stmt : nest.stmts) {
      std::erase_if(stmt.masks, [&](const Mask& mask) { return is_off(mask.condition, values_); });
      for (Mask& mask : stmt.masks) mask.condition.clear();
    }
  }

  static bool is_used(const Program& program, const std::string& axis) {
    const auto has = [&](const std::vector<std::string>& names) {
      return std::ranges::find(names, axis) != names.end();
    };
    const auto names = [&](const Scalar& scalar) { return scalar == Scalar(Name{axis}); };
    const auto in_cost = [&](const std::optional<Poly>& cost) {
      return cost &&
             (names(cost->first) || std::ranges::any_of(cost->rest, names, &Poly::Term::value));
    };
    const auto in_decl = [&](const Decl& decl) {
      if (const auto* const other = std::get_if<Axis>(&decl)) return other->of == axis;
      if (const auto* const buffer = std::get_if<Buffer>(&decl)) return has(axis_names(*buffer));
      if (const auto* const route = std::get_if<Route>(&decl)) {
        return has(route->slots) || has(route->choices);
      }
      return in_cost(std::get<LeafDecl>(decl).flops) || in_cost(std::get<LeafDecl>(decl).bytes);
    };
    return std::ranges::any_of(program.decls, in_decl);
  }

  static void drop_axes(Program& program, const std::set<std::string>& gone) {
    const auto is_gone = [&](const std::string& axis) { return gone.contains(axis); };
    std::erase_if(program.decls, [&](const Decl& decl) {
      const auto* const axis = std::get_if<Axis>(&decl);
      return axis != nullptr && is_gone(axis->name);
    });
    for (std::vector<Nest>* const nests : {&program.nests, &program.given}) {
      for (Nest& nest : *nests) {
        for (std::vector<std::string>* const axes : {&nest.over, &nest.whole, &nest.seq}) {
          std::erase_if(*axes, is_gone);
        }
      }
    }
  }

  const Program& program_;
  const Values& values_;
};

// Replaces names by values. An axis hides a parameter of the same name, as in a template's costs
// and masks; so does the buffer that a mask reads.
class Substitution {
 public:
  Substitution(const Program& program, const Values& values) : program_(program), values_(values) {}

  [[nodiscard]] Checked<Decl> apply(Axis axis) const {
    HP_TRY(const std::int64_t size, SizeEvaluator(axis, values_).evaluate());
    axis.size = Poly{.first = size, .rest = {}};
    return Decl(std::move(axis));
  }

  [[nodiscard]] Checked<Decl> apply(Buffer buffer) const {
    if (!buffer.dtype_param.empty()) {
      const Name& dtype = std::get<Name>(values_.at(buffer.dtype_param));
      buffer.dtype = *parse_dtype(dtype.text);
      buffer.dtype_param.clear();
    }
    return Decl(std::move(buffer));
  }

  [[nodiscard]] Checked<Decl> apply(Route route) const {
    if (route.load) substitute(*route.load);
    return Decl(std::move(route));
  }

  [[nodiscard]] Checked<Decl> apply(LeafDecl leaf) const {
    if (leaf.flops) substitute(*leaf.flops);
    if (leaf.bytes) substitute(*leaf.bytes);
    return Decl(std::move(leaf));
  }

  [[nodiscard]] Nest apply(Nest nest) const {
    for (Stmt& stmt : nest.stmts) {
      for (auto& [name, value] : stmt.attrs) substitute(value);
      for (Mask& mask : stmt.masks) {
        const std::size_t last = mask.call.args.size() - (data_of(mask) ? 1 : 0);
        for (std::size_t i = 0; i < last; ++i) substitute(mask.call.args[i]);
      }
    }
    return nest;
  }

 private:
  void substitute(Scalar& scalar) const {
    const auto* const name = std::get_if<Name>(&scalar);
    if (name == nullptr || find_axis(program_, name->text) != nullptr) return;
    const auto value = values_.find(name->text);
    if (value != values_.end()) scalar = Scalar(value->second);
  }

  void substitute(Poly& poly) const {
    substitute(poly.first);
    for (Poly::Term& term : poly.rest) substitute(term.value);
  }

  void substitute(Call& call) const {
    for (Scalar& arg : call.args) substitute(arg);
  }

  const Program& program_;
  const Values& values_;
};

}  // namespace

Checked<Program> instantiate(const Program& program, const Bindings& bindings) {
  HP_REQUIRE_OK(check_items(program));
  HP_REQUIRE_OK(check_bindings_known(program, bindings));
  HP_TRY(const Values values, evaluate_params(program, bindings));
  const Program reduced = Reduction(program, values).run();
  const Substitution substitution(reduced, values);
  Program ground{.name = program.name, .params = {}, .decls = {}, .nests = {}};
  for (const Decl& decl : reduced.decls) {
    HP_TRY(Decl substituted,
           std::visit([&](const auto& item) { return substitution.apply(item); }, decl));
    ground.decls.push_back(std::move(substituted));
  }
  for (const Nest& nest : reduced.nests) ground.nests.push_back(substitution.apply(nest));
  for (const Nest& nest : reduced.given) ground.given.push_back(substitution.apply(nest));
  HP_REQUIRE_OK(check_program(ground));
  return ground;
}

}  // namespace harpe
