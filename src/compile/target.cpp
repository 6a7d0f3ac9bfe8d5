#include "compile/target.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "ir/text.h"
#include "ops/registry.h"
#include "support/whole_file.h"

namespace harpe {
namespace {

Checked<Scalar> parse_value(const std::string& word, std::string_view text) {
  const auto in_parameter = [&](Diag diag) {
    diag.where.reset();  // a column within one word of a command line is no help
    return with_note(std::move(diag), "in parameter `" + word + "`");
  };
  Checked<Cursor> cursor = Cursor::open(text);
  if (!cursor.ok()) return in_parameter(std::move(cursor).error());
  Checked<Scalar> value = parse_scalar(*cursor);
  if (!value.ok()) return in_parameter(std::move(value).error());
  if (!cursor->at_end()) return in_parameter(cursor->unexpected("the end of the value"));
  return value;
}

std::string list_params(const Program& program) {
  std::string out;
  for (const Param& param : program.params) out += (out.empty() ? "`" : ", `") + param.name + "`";
  return out.empty() ? "none" : out;
}

bool is_off(const Scalar& value) {
  return value == Scalar(Name{"false"}) || value == Scalar(std::int64_t{0});
}

// `bindings`, with `true` for the parameters on which the named inputs depend.
Checked<Bindings> turn_on(const Program& program, Bindings bindings,
                          std::span<const std::string> inputs) {
  for (const std::string& name : inputs) {
    const Buffer* const buffer = find_buffer(program, name);
    if (buffer == nullptr || buffer->condition.empty()) continue;
    const auto param = std::ranges::find(program.params, buffer->condition, &Param::name);
    const auto bound = bindings.find(buffer->condition);
    if (bound != bindings.end() && is_off(bound->second)) {
      return make_diag(DiagCode::X021, {{"name", name},
                                        {"program", program.name},
                                        {"condition", buffer->condition},
                                        {"value", print(bound->second)}});
    }
    if (bound != bindings.end() || !is_off(param->value)) continue;
    if (param->kind != "bool") {
      return make_diag(
          DiagCode::X020,
          {{"name", name}, {"program", program.name}, {"condition", buffer->condition}});
    }
    bindings.emplace(buffer->condition, Name{"true"});
  }
  return bindings;
}

Checked<std::int64_t> parse_size(std::string_view spec, std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || stop != end || error != std::errc()) {
    return make_diag(DiagCode::U112,
                     {{"text", spec}, {"what", "`" + std::string(text) + "` is not a size"}});
  }
  return value;
}

bool is_identifier(std::string_view text) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !text.empty() && is_letter(text.front()) &&
         std::ranges::all_of(text, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace

bool is_path(std::string_view name) { return name.find_first_of("./") != std::string_view::npos; }

TargetKind kind_of(std::string_view target) {
  if (target.ends_with(".op")) return TargetKind::OperatorFile;
  if (target.ends_with(".plan")) return TargetKind::PlanFile;
  return TargetKind::Operator;
}

Checked<Program> load_template(const std::string& target) {
  if (kind_of(target) == TargetKind::OperatorFile) {
    HP_TRY(const std::string text, read_whole(target));
    return parse_operator(text, target);
  }
  if (const Operator* op = find_operator(target)) return template_of(*op);
  std::vector<std::string> names;
  for (const Operator& op : all_operators()) names.emplace_back(op.name);
  std::string hint = suggestion(target, names);
  if (target.find('=') != std::string::npos) hint = ": parameters follow the operator";
  if (is_path(target)) hint = ": a file of one ends in `.op`, and a plan in `.plan`";
  return make_diag(DiagCode::U108, {{"name", target}, {"hint", hint}});
}

Checked<Bindings> parse_parameters(std::span<const std::string> words) {
  Bindings bindings;
  std::map<std::string, std::string> seen;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == word.size()) {
      return make_diag(DiagCode::U107, {{"text", word}});
    }
    const std::string name = word.substr(0, equals);
    if (const auto [first, is_new] = seen.emplace(name, word); !is_new) {
      return make_diag(DiagCode::U106,
                       {{"name", name}, {"first", first->second}, {"second", word}});
    }
    HP_TRY(Scalar value, parse_value(word, std::string_view(word).substr(equals + 1)));
    bindings.emplace(name, std::move(value));
  }
  return bindings;
}

Checked<Program> bind_program(const Program& templated, std::span<const std::string> parameters,
                              std::span<const std::string> inputs) {
  HP_TRY(Bindings given, parse_parameters(parameters));
  HP_TRY(const Bindings bindings, turn_on(templated, std::move(given), inputs));
  Checked<Program> program = instantiate(templated, bindings);
  if (!program.ok() && program.error().code == DiagCode::P101) {
    return with_note(std::move(program).error(),
                     "parameters of `" + templated.name + "`: " + list_params(templated));
  }
  return program;
}

Checked<Mesh> parse_mesh_option(std::string_view text) {
  const auto refuse = [&](const std::string& what) {
    return make_diag(DiagCode::U112, {{"text", text}, {"what", what}});
  };
  Mesh mesh;
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    const std::size_t equals = part.find('=');
    if (part.empty()) return refuse("an axis is empty");
    if (equals == std::string_view::npos) return refuse("`" + std::string(part) + "` has no `=`");
    const std::string name(part.substr(0, equals));
    if (!is_identifier(name)) return refuse("`" + name + "` is not a name");
    HP_TRY(const std::int64_t size, parse_size(text, part.substr(equals + 1)));
    mesh.axes.push_back({.name = name, .size = size});
    mesh.name += (mesh.name.empty() ? "" : "_") + name + std::to_string(size);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  HP_REQUIRE_OK(check_mesh(mesh));
  return mesh;
}

}  // namespace harpe
