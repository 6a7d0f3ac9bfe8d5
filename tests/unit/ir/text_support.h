#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/text.h"

namespace harpe::ir_test {

using Item = std::variant<Topology, Mesh, Program, NormalForm>;

inline std::string print_item(const Item& item) {
  return std::visit([](const auto& value) { return print(value); }, item);
}

template <class Value>
Checked<Item> as_item(Checked<Value> value) {
  if (!value.ok()) return std::move(value).error();
  return Item(std::move(value).value());
}

inline Checked<Item> parse_item(Cursor& cursor) {
  if (cursor.at("topo")) return as_item(parse_topology(cursor));
  if (cursor.at("mesh")) return as_item(parse_mesh(cursor));
  if (cursor.at("program")) return as_item(parse_program(cursor));
  if (cursor.at("commir")) return as_item(parse_form(cursor));
  return cursor.unexpected("an item");
}

// Parses a single item that ends the text.
inline Checked<Item> parse_text(std::string_view text) {
  HP_TRY(Cursor cursor, Cursor::open(text));
  HP_TRY(Item item, parse_item(cursor));
  if (!cursor.at_end()) return cursor.unexpected("the end of the text");
  return item;
}

// `text` without comments and blank lines, which printing must reproduce.
inline std::string normalise(const std::string& text) {
  std::istringstream lines(text);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    line = line.substr(0, line.find("//"));
    line = line.substr(0, line.find_last_not_of(" \t") + 1);
    if (!line.empty()) out += line + "\n";
  }
  return out;
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path);
  HP_CHECK(file.good(), path);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

// The topologies, meshes, programs and normal forms of the model's examples, unchanged.
inline std::vector<std::string> example_items() {
  const std::vector<std::string> files = {"00_mesh",   "01_gemm", "02_attn",   "03_bwd",
                                          "04_decode", "05_moe",  "06_mercury"};
  std::vector<std::string> items;
  for (const std::string& name : files) {
    std::istringstream lines(
        normalise(read_file(HARPE_SOURCE_DIR "/tests/oracle/examples/" + name + ".cir")));
    for (std::string line; std::getline(lines, line);) {
      if (line.front() != ' ' && line.front() != '}') items.emplace_back();
      items.back() += line + "\n";
    }
  }
  std::erase_if(items, [](const std::string& item) { return item.starts_with("schedule "); });
  return items;
}

inline Program program_of(std::string_view text) {
  return std::get<Program>(parse_text(text).value());
}

}  // namespace harpe::ir_test
