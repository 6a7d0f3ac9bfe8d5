// docs/schedules.md names every primitive and schedule, and its script runs.

#include <fstream>
#include <sstream>

#include "ir/instantiate.h"
#include "ops/registry.h"
#include "schedule/named/registry.h"
#include "tests/unit/schedule/world.h"

namespace harpe {
namespace {

std::string read_docs() {
  std::ifstream file(std::string(HARPE_SOURCE_DIR) + "/docs/schedules.md");
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

TEST(Docs, have_a_row_for_every_primitive) {
  const std::string docs = read_docs();
  for (const PrimitiveInfo& primitive : all_primitives()) {
    EXPECT_NE(docs.find("| `" + std::string(primitive.name) + "("), std::string::npos)
        << primitive.usage;
  }
}

TEST(Docs, name_every_schedule_of_every_operator) {
  const std::string docs = read_docs();
  for (const std::string& op : operators_with_schedules()) {
    const std::size_t begin = docs.find("### " + op + "\n");
    ASSERT_NE(begin, std::string::npos) << op;
    const std::string section = docs.substr(begin, docs.find("### ", begin + 4) - begin);
    if (op == "ag_gemm") continue;  // documented as a difference from gemm
    for (const NamedSchedule& schedule : schedules_of(op)) {
      EXPECT_NE(section.find("`" + std::string(schedule.name) + "`"), std::string::npos)
          << op << " " << schedule.name;
    }
  }
}

TEST(Docs, show_a_script_that_makes_the_ring) {
  const std::string docs = read_docs();
  const std::size_t begin = docs.find("```\n") + 4;
  const std::string text = docs.substr(begin, docs.find("```", begin) - begin);
  const Checked<SourceFile> file = parse_source(text, "docs");
  ASSERT_TRUE(file.ok()) << render(file.error());
  EXPECT_EQ(print(*file), text);
  const Checked<Program> program = instantiate(template_of(*find_operator("attention")), {});
  ASSERT_TRUE(program.ok());
  const Mesh mesh{"one", {{"gpu", 8}}};
  const Checked<NormalForm> form = replay(*program, mesh, *items_of<Script>(*file).at(0));
  ASSERT_TRUE(form.ok()) << render(form.error());
  const Checked<Script> named = generate_schedule("attention", "ring", *program, mesh);
  ASSERT_TRUE(named.ok());
  Checked<NormalForm> expected = replay(*program, mesh, *named);
  ASSERT_TRUE(expected.ok());
  for (NestItem& item : expected->nests[0].items) {  // that script leaves transports open
    if (auto* move = std::get_if<Move>(&item)) {
      move->via.reset();
      move->signal.reset();
    }
  }
  EXPECT_EQ(*form, *expected);
}

}  // namespace
}  // namespace harpe
