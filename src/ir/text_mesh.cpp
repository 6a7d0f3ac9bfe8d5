#include "ir/text.h"

#include <algorithm>

#include "ir/text_parts.h"

namespace harpe {
namespace {

bool is_word(std::string_view content) {
  const Checked<Cursor> cursor = Cursor::open(content);
  return cursor.ok() && cursor->peek().kind == TokenKind::Identifier &&
         cursor->peek().text.size() == content.size();
}

// A text that is one identifier prints without quotes.
std::string print_figure(const TopologyValue& value) {
  if (const auto* const content = std::get_if<std::string>(&value)) {
    return is_word(*content) ? *content : text::quote(*content);
  }
  if (const auto* const real = std::get_if<double>(&value)) return print_double(*real);
  return std::to_string(std::get<std::int64_t>(value));
}

TopologyValue figure_of(Scalar scalar) {
  if (auto* const integer = std::get_if<std::int64_t>(&scalar)) return *integer;
  if (auto* const real = std::get_if<double>(&scalar)) return *real;
  if (auto* const name = std::get_if<Name>(&scalar)) return std::move(name->text);
  return std::move(std::get<std::string>(scalar));
}

Checked<TopologyLine> parse_line(Cursor& cursor) {
  TopologyLine line;
  HP_TRY(line.subject, cursor.expect_identifier("`gpu`, `level` or `}`"));
  HP_TRY(line.name, cursor.expect_identifier("a name"));
  // A figure is `key =`; any other identifier starts the next line.
  while (cursor.at(TokenKind::Identifier) && cursor.peek(1).text == "=") {
    const Token key = cursor.take();
    const auto is_key = [&](const auto& figure) { return figure.first == key.text; };
    if (std::ranges::any_of(line.figures, is_key)) {
      return text::given_twice(cursor, key, "`" + line.subject + " " + line.name + "`");
    }
    HP_REQUIRE_OK(cursor.expect("="));
    HP_TRY(Scalar value, parse_scalar(cursor));
    line.figures.emplace_back(key.text, figure_of(std::move(value)));
  }
  return line;
}

Checked<MeshAxis> parse_axis(Cursor& cursor) {
  MeshAxis axis;
  HP_TRY(axis.name, cursor.expect_identifier("the name of a mesh axis"));
  HP_REQUIRE_OK(cursor.expect(":"));
  HP_TRY(axis.size, cursor.expect_integer("the axis' size, an integer"));
  return axis;
}

}  // namespace

std::string print(const Mesh& mesh) {
  return "mesh " + mesh.name + " = " +
         text::join(
             mesh.axes, ", ",
             [](const MeshAxis& axis) { return axis.name + ":" + std::to_string(axis.size); }) +
         "\n";
}

std::string print(const Topology& topology) {
  std::string out = "topo " + topology.name + " {\n";
  for (const TopologyLine& line : topology.lines) {
    out += "  " + line.subject + " " + line.name;
    for (const auto& [key, value] : line.figures) out += " " + key + "=" + print_figure(value);
    out += "\n";
  }
  return out + "}\n";
}

Checked<Mesh> parse_mesh(Cursor& cursor) {
  const Token keyword = cursor.peek();
  HP_REQUIRE_OK(cursor.expect("mesh"));
  Mesh mesh;
  HP_TRY(mesh.name, cursor.expect_identifier("the mesh's name"));
  HP_REQUIRE_OK(cursor.expect("="));
  HP_TRY(mesh.axes, text::parse_list(cursor, [&] { return parse_axis(cursor); }));
  if (Checked<Ok> checked = check_mesh(mesh); !checked.ok()) {
    return cursor.locate(std::move(checked).error(), keyword);
  }
  return mesh;
}

Checked<Topology> parse_topology(Cursor& cursor) {
  HP_REQUIRE_OK(cursor.expect("topo"));
  Topology topology;
  HP_TRY(topology.name, cursor.expect_identifier("the topology's name"));
  HP_REQUIRE_OK(cursor.expect("{"));
  while (!cursor.accept("}")) {
    HP_TRY(TopologyLine line, parse_line(cursor));
    topology.lines.push_back(std::move(line));
  }
  return topology;
}

}  // namespace harpe
