#include "ir/program_check.h"

#include <algorithm>
#include <iterator>

#include "ir/text.h"
#include "ir/text_parts.h"

namespace harpe {
namespace {

std::vector<std::string> names_of_axes(const Program& program) {
  std::vector<std::string> names;
  for (const Axis* const axis : axes_of(program)) names.push_back(axis->name);
  return names;
}

Diag unknown(const std::string& where, std::string_view kind, const std::string& name,
             const std::vector<std::string>& candidates) {
  return make_diag(
      DiagCode::P002,
      {{"where", where}, {"kind", kind}, {"name", name}, {"hint", suggestion(name, candidates)}});
}

Diag declared_twice(std::string_view kind, const std::string& name) {
  return make_diag(DiagCode::P001, {{"kind", kind}, {"name", name}});
}

std::string_view name_kind(std::string_view kind) {
  if (kind == "bool") return "a bool";
  if (kind == "dtype") return "a dtype";
  return kind == "float" ? "a number" : "an integer";
}

Checked<Ok> check_at_least_one(const std::string& where, std::string_view what,
                               std::int64_t value) {
  if (value >= 1) return Ok{};
  return make_diag(DiagCode::P020, {{"where", where}, {"what", what}, {"value", value}});
}

Checked<Ok> check_axis_name(const Program& program, const std::string& where,
                            const std::string& name) {
  if (find_axis(program, name) != nullptr) return Ok{};
  return unknown(where, "axis", name, names_of_axes(program));
}

Checked<Ok> check_axis_list(const Program& program, const std::string& where,
                            const std::vector<std::string>& names) {
  for (auto name = names.begin(); name != names.end(); ++name) {
    HP_REQUIRE_OK(check_axis_name(program, where, *name));
    if (std::find(names.begin(), name, *name) != name) {
      return make_diag(DiagCode::P003, {{"where", where}, {"name", *name}});
    }
  }
  return Ok{};
}

// What a name in a polynomial may refer to.
enum class PolyUse : std::uint8_t { Size, Cost };

Checked<Ok> check_poly_term(const Program& program, const std::string& where, const Scalar& term,
                            PolyUse use) {
  if (std::holds_alternative<std::int64_t>(term)) return Ok{};
  if (use == PolyUse::Cost && std::holds_alternative<double>(term)) return Ok{};
  const auto* const name = std::get_if<Name>(&term);
  if (name == nullptr) {
    const std::string_view expected = use == PolyUse::Cost ? "a number, an axis or a parameter"
                                                           : "an integer or an integer parameter";
    return make_diag(DiagCode::P010,
                     {{"where", where}, {"name", print(term)}, {"expected", expected}});
  }
  if (use == PolyUse::Cost && find_axis(program, name->text) != nullptr) return Ok{};
  const Param* const param = find_param(program, name->text);
  if (param != nullptr) {
    const bool fits = param->kind.empty() || (use == PolyUse::Cost && param->kind == "float");
    return fits ? Checked<Ok>(Ok{})
                : misused(where, *param, use == PolyUse::Cost ? "a number" : "an integer");
  }
  std::vector<std::string> candidates;
  if (use == PolyUse::Cost) candidates = names_of_axes(program);
  for (const Param& known : program.params) candidates.push_back(known.name);
  return unknown(where, use == PolyUse::Cost ? "axis or parameter" : "parameter", name->text,
                 candidates);
}

Checked<Ok> check_poly(const Program& program, const std::string& where, const Poly& poly,
                       PolyUse use) {
  HP_REQUIRE_OK(check_poly_term(program, where, poly.first, use));
  for (const Poly::Term& term : poly.rest) {
    HP_REQUIRE_OK(check_poly_term(program, where, term.value, use));
  }
  return Ok{};
}

Checked<Ok> check_item(const Program& program, const Axis& axis) {
  const std::string where = "axis `" + axis.name + "`";
  HP_REQUIRE_OK(check_poly(program, where, axis.size, PolyUse::Size));
  if (!axis.of.empty()) HP_REQUIRE_OK(check_axis_name(program, where, axis.of));
  HP_REQUIRE_OK(check_at_least_one(where, "its grain", axis.align));
  if (axis.align > kMaxAxisSize) {
    return make_diag(DiagCode::P064,
                     {{"name", axis.name}, {"value", axis.align}, {"limit", kMaxAxisSize}});
  }
  const auto* const size = std::get_if<std::int64_t>(&axis.size.first);
  if (axis.size.rest.empty() && size != nullptr && (*size < 1 || *size > kMaxAxisSize)) {
    return make_diag(DiagCode::P103,
                     {{"name", axis.name}, {"value", *size}, {"limit", kMaxAxisSize}});
  }
  return Ok{};
}

Checked<Ok> check_item(const Program& program, const Buffer& buffer) {
  const std::string where = "buffer `" + buffer.name + "`";
  if (!buffer.dtype_param.empty()) {
    const Param* const param = find_param(program, buffer.dtype_param);
    if (param == nullptr) {
      std::vector<std::string> candidates;
      for (const Param& known : program.params) {
        if (known.kind == "dtype") candidates.push_back(known.name);
      }
      const std::vector<std::string> dtypes = text::words_up_to(DType::Bool);
      candidates.insert(candidates.end(), dtypes.begin(), dtypes.end());
      return unknown(where, "dtype", buffer.dtype_param, candidates);
    }
    if (param->kind != "dtype") return misused(where, *param, "a dtype");
  }
  if (!buffer.condition.empty() && buffer.role != Role::In) {
    return make_diag(DiagCode::P030, {{"name", buffer.name}, {"role", print(buffer.role)}});
  }
  HP_REQUIRE_OK(check_condition(program, where, buffer.condition));
  HP_REQUIRE_OK(check_axis_list(program, where, axis_names(buffer)));
  for (const Dim& dim : buffer.dims) {
    const auto* const opaque = std::get_if<std::int64_t>(&dim);
    if (opaque != nullptr) HP_REQUIRE_OK(check_at_least_one(where, "an extent", *opaque));
  }
  return Ok{};
}

Checked<Ok> check_item(const Program& program, const Route& route) {
  const std::string where = "route `" + route.name + "`";
  std::vector<std::string> axes = route.slots;
  axes.insert(axes.end(), route.choices.begin(), route.choices.end());
  HP_REQUIRE_OK(check_axis_list(program, where, axes));
  if (find_buffer(program, route.by) == nullptr) {
    std::vector<std::string> candidates;
    for (const Buffer* const buffer : buffers_of(program)) candidates.push_back(buffer->name);
    return unknown(where, "buffer", route.by, candidates);
  }
  return Ok{};
}

Checked<Ok> check_item(const Program& program, const LeafDecl& leaf) {
  const std::string where = "leaf `" + leaf.name + "`";
  if (leaf.flops) HP_REQUIRE_OK(check_poly(program, where, *leaf.flops, PolyUse::Cost));
  if (leaf.bytes) HP_REQUIRE_OK(check_poly(program, where, *leaf.bytes, PolyUse::Cost));
  return Ok{};
}

std::string_view kind_of(const Axis&) { return "axis"; }
std::string_view kind_of(const Buffer&) { return "buffer"; }
std::string_view kind_of(const Route&) { return "route"; }
std::string_view kind_of(const LeafDecl&) { return "leaf"; }

}  // namespace

const Param* find_param(const Program& program, std::string_view name) {
  const auto found = std::ranges::find(program.params, name, &Param::name);
  return found == program.params.end() ? nullptr : &*found;
}

bool is_of_kind(const Scalar& value, std::string_view kind) {
  const auto* const name = std::get_if<Name>(&value);
  if (kind == "bool") return name != nullptr && (name->text == "true" || name->text == "false");
  if (kind == "dtype") return name != nullptr && parse_dtype(name->text).has_value();
  const bool is_integer = std::holds_alternative<std::int64_t>(value);
  return is_integer || (kind == "float" && std::holds_alternative<double>(value));
}

Diag wrong_kind(const Param& param, const Scalar& value) {
  std::vector<std::string> words;
  std::string kind(name_kind(param.kind));
  if (param.kind == "bool") {
    words = {"true", "false"};
    kind = "`true` or `false`";
  }
  if (param.kind == "dtype") {
    words = text::words_up_to(DType::Bool);
    kind += " (bf16, f16, f32 or f64)";
  }
  return make_diag(DiagCode::P102, {{"name", param.name},
                                    {"kind", kind},
                                    {"value", print(value)},
                                    {"hint", suggestion(print(value), words)}});
}

Diag misused(const std::string& where, const Param& param, std::string_view expected) {
  return make_diag(DiagCode::P009, {{"where", where},
                                    {"name", param.name},
                                    {"found", name_kind(param.kind)},
                                    {"expected", expected}});
}

Checked<Ok> check_condition(const Program& program, const std::string& where,
                            const std::string& condition) {
  if (condition.empty()) return Ok{};
  const Param* const param = find_param(program, condition);
  if (param == nullptr) {
    std::vector<std::string> switches;
    for (const Param& known : program.params) {
      if (known.kind == "bool" || known.kind.empty()) switches.push_back(known.name);
    }
    return unknown(where, "bool or integer parameter", condition, switches);
  }
  if (param->kind == "bool" || param->kind.empty()) return Ok{};
  return misused(where, *param, "a bool or an integer");
}

Checked<Ok> check_param(const Program& program, std::size_t index) {
  const Param& param = program.params[index];
  const auto begin = program.params.begin();
  const auto self = begin + static_cast<std::ptrdiff_t>(index);
  if (std::find_if(begin, self, [&](const Param& other) { return other.name == param.name; }) !=
      self) {
    return declared_twice("parameter", param.name);
  }
  if (is_of_kind(param.value, param.kind)) return Ok{};
  const auto* const name = std::get_if<Name>(&param.value);
  if (name == nullptr) return wrong_kind(param, param.value);
  // A default names an earlier parameter, so there is no cycle.
  const auto source = std::ranges::find(begin, self, name->text, &Param::name);
  if (source == self) {
    if (param.kind == "bool" || param.kind == "dtype") return wrong_kind(param, param.value);
    std::vector<std::string> earlier;
    std::ranges::transform(begin, self, std::back_inserter(earlier), &Param::name);
    return unknown("parameter `" + param.name + "`", "earlier parameter", name->text, earlier);
  }
  const bool fits = source->kind == param.kind || (source->kind.empty() && param.kind == "float");
  if (fits) return Ok{};
  return misused("parameter `" + param.name + "`", *source, name_kind(param.kind));
}

Checked<Ok> check_decl(const Program& program, std::size_t index) {
  return std::visit(
      [&](const auto& item) -> Checked<Ok> {
        using Item = std::decay_t<decltype(item)>;
        for (std::size_t i = 0; i < index; ++i) {
          const auto* const earlier = std::get_if<Item>(&program.decls[i]);
          if (earlier != nullptr && earlier->name == item.name) {
            return declared_twice(kind_of(item), item.name);
          }
        }
        return check_item(program, item);
      },
      program.decls[index]);
}

Checked<Ok> check_nest(const Program& program, std::size_t index) {
  const Nest& nest = program.nests[index];
  for (std::size_t i = 0; i < index; ++i) {
    if (program.nests[i].name == nest.name) return declared_twice("nest", nest.name);
  }
  std::vector<std::string> axes = nest.over;
  axes.insert(axes.end(), nest.whole.begin(), nest.whole.end());
  HP_REQUIRE_OK(check_axis_list(program, "nest `" + nest.name + "`", axes));
  HP_REQUIRE_OK(check_axis_list(program, "nest `" + nest.name + "`", nest.seq));
  for (const std::string& axis : nest.seq) {
    if (std::ranges::find(nest.over, axis) == nest.over.end()) {
      return make_diag(DiagCode::P005, {{"nest", nest.name}, {"name", axis}});
    }
  }
  return Ok{};
}

}  // namespace harpe
