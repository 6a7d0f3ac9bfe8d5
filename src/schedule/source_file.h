#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/form.h"
#include "ir/program.h"
#include "machine/mesh.h"
#include "machine/topology.h"
#include "schedule/script.h"

namespace harpe {

using SourceItem = std::variant<Topology, Mesh, Program, NormalForm, Script>;

// A text file of items in any order: `file = { topo | mesh | program | commir | schedule }`.
struct SourceFile {
  std::vector<SourceItem> items;
  friend bool operator==(const SourceFile&, const SourceFile&) = default;
};

// `name` is the file's name in diagnostics. parse_source(print(f)) == f.
// Errors: the items' own; T001 no item starts here; S027 two items have one kind and name.
[[nodiscard]] Checked<SourceFile> parse_source(std::string_view text, const std::string& name = "");
[[nodiscard]] std::string print(const SourceFile& file);

// The item of type T called `name`, or nullptr.
template <class T>
[[nodiscard]] const T* find_item(const SourceFile& file, std::string_view name) {
  for (const SourceItem& item : file.items) {
    const T* typed = std::get_if<T>(&item);
    if (typed != nullptr && typed->name == name) return typed;
  }
  return nullptr;
}

// All items of type T, in the file's order.
template <class T>
[[nodiscard]] std::vector<const T*> items_of(const SourceFile& file) {
  std::vector<const T*> items;
  for (const SourceItem& item : file.items) {
    if (const T* typed = std::get_if<T>(&item)) items.push_back(typed);
  }
  return items;
}

}  // namespace harpe
