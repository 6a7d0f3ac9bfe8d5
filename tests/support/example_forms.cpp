#include "tests/support/example_forms.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ir/text.h"
#include "leaves/leaf.h"

namespace harpe::test {
namespace {

template <class T>
T must(Checked<T> result) {
  HP_CHECK(result.ok(), render(result.error()));
  return std::move(result).value();
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// Skips a `schedule { … }` script, which is not a normal form.
void skip_block(Cursor& cursor) {
  while (!cursor.accept("{")) cursor.take();
  int depth = 1;
  while (depth > 0) {
    if (cursor.at("{")) ++depth;
    if (cursor.at("}")) --depth;
    cursor.take();
  }
}

// Declares the leaves that the compiler does not define, with free terms.
void declare_leaves(Program& program) {
  for (const Nest& nest : program.nests) {
    for (const Stmt& stmt : nest.stmts) {
      const bool known =
          find_leaf_contract(stmt.leaf) != nullptr || find_leaf(program, stmt.leaf) != nullptr;
      if (known) continue;
      program.decls.emplace_back(
          LeafDecl{.name = stmt.leaf, .flops = {}, .bytes = {}, .kernel = {}});
    }
  }
}

}  // namespace

std::vector<Example> example_forms() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(HARPE_SOURCE_DIR "/tests/oracle/examples")) {
    if (entry.path().extension() == ".cir") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::vector<Program> programs;
  std::vector<Mesh> meshes;
  std::vector<NormalForm> forms;
  for (const std::filesystem::path& file : files) {
    const std::string text = read_file(file);
    Cursor cursor = must(Cursor::open(text, file.filename().string()));
    while (!cursor.at_end()) {
      if (cursor.at("program")) {
        programs.push_back(must(parse_program(cursor)));
      } else if (cursor.at("mesh")) {
        meshes.push_back(must(parse_mesh(cursor)));
      } else if (cursor.at("topo")) {
        (void)must(parse_topology(cursor));
      } else if (cursor.at("commir")) {
        forms.push_back(must(parse_form(cursor)));
      } else {
        skip_block(cursor);
      }
    }
  }
  for (Program& program : programs) declare_leaves(program);
  std::vector<Example> examples;
  for (NormalForm& form : forms) {
    const auto program = std::ranges::find(programs, form.program, &Program::name);
    const auto mesh = std::ranges::find(meshes, form.mesh, &Mesh::name);
    HP_CHECK(program != programs.end() && mesh != meshes.end(), "example `" + form.name + "`");
    examples.push_back({.program = *program, .mesh = *mesh, .form = std::move(form)});
  }
  return examples;
}

}  // namespace harpe::test
