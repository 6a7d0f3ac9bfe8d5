#include "tests/conformance/exec/example_plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "schedule/source_file.h"

namespace harpe::test {
namespace {

SourceFile read_examples() {
  const std::filesystem::path folder =
      std::filesystem::path(HARPE_SOURCE_DIR) / "tests/oracle/examples";
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  SourceFile all;
  for (const std::filesystem::path& path : paths) {
    std::ifstream stream(path);
    const std::string text((std::istreambuf_iterator<char>(stream)), {});
    Checked<SourceFile> file = parse_source(text, path.filename().string());
    EXPECT_TRUE(file.ok()) << (file.ok() ? "" : render(file.error()));
    if (file.ok()) std::ranges::move(file.value().items, std::back_inserter(all.items));
  }
  return all;
}

}  // namespace

std::vector<Example> examples_for(const std::vector<std::string>& programs) {
  const SourceFile all = read_examples();
  std::vector<Example> examples;
  for (const NormalForm* form : items_of<NormalForm>(all)) {
    const Mesh* mesh = find_item<Mesh>(all, form->mesh);
    EXPECT_NE(mesh, nullptr) << form->mesh;
    std::vector<std::string> names = {form->program};
    if (form->program == "attn") names.emplace_back("attn_causal");
    for (const std::string& name : names) {
      const Program* program = find_item<Program>(all, name);
      EXPECT_NE(program, nullptr) << name;
      if (std::ranges::find(programs, name) == programs.end()) continue;
      examples.push_back({.program = *program, .mesh = *mesh, .form = *form});
      examples.back().form.program = name;
      // The examples name GPU kernels for bf16; without a name every executor picks its own.
      for (NestForm& nest : examples.back().form.nests) nest.leaf.kernel.reset();
    }
  }
  return examples;
}

Program resized(Program program, const std::map<std::string, std::int64_t>& sizes, DType dtype) {
  for (Decl& decl : program.decls) {
    if (auto* axis = std::get_if<Axis>(&decl)) {
      const auto size = sizes.find(axis->name);
      if (size != sizes.end()) axis->size = Poly{.first = size->second, .rest = {}};
    }
    if (auto* buffer = std::get_if<Buffer>(&decl)) {
      if (buffer->dtype == DType::BF16) buffer->dtype = dtype;
    }
  }
  return program;
}

}  // namespace harpe::test
