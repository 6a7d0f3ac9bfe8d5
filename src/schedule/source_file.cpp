#include "schedule/source_file.h"

#include <array>

#include "ir/text.h"

namespace harpe {
namespace {

constexpr std::array<std::string_view, 5> kKeywords = {"topo", "mesh", "program", "commir",
                                                       "schedule"};

template <class T>
Checked<SourceItem> wrap(Checked<T> item) {
  if (!item.ok()) return std::move(item).error();
  return SourceItem(std::move(item).value());
}

Checked<SourceItem> parse_item(Cursor& cursor) {
  if (cursor.at("topo")) return wrap(parse_topology(cursor));
  if (cursor.at("mesh")) return wrap(parse_mesh(cursor));
  if (cursor.at("program")) return wrap(parse_program(cursor));
  if (cursor.at("commir")) return wrap(parse_form(cursor));
  if (cursor.at("schedule")) return wrap(parse_script(cursor));
  return cursor.unexpected("`topo`, `mesh`, `program`, `commir` or `schedule`");
}

const std::string& name_of(const SourceItem& item) {
  return std::visit([](const auto& typed) -> const std::string& { return typed.name; }, item);
}

}  // namespace

Checked<SourceFile> parse_source(std::string_view text, const std::string& name) {
  HP_TRY(Cursor cursor, Cursor::open(text, name));
  SourceFile file;
  while (!cursor.at_end()) {
    const Token start = cursor.peek();
    HP_TRY(SourceItem item, parse_item(cursor));
    for (const SourceItem& other : file.items) {
      if (other.index() != item.index() || name_of(other) != name_of(item)) continue;
      return cursor.locate(
          make_diag(DiagCode::S027, {{"name", name_of(item)}, {"kind", kKeywords[item.index()]}}),
          start);
    }
    file.items.push_back(std::move(item));
  }
  return file;
}

std::string print(const SourceFile& file) {
  std::string out;
  for (const SourceItem& item : file.items) {
    out += std::visit([](const auto& typed) { return print(typed); }, item);
  }
  return out;
}

}  // namespace harpe
