#include "schedule/source_file.h"

#include "tests/unit/schedule/world.h"

namespace harpe {
namespace source_file_test {

std::string refuse(std::string_view text) {
  const Checked<SourceFile> file = parse_source(text, "f.sched");
  return file.ok() ? "accepted" : render(file.error());
}

TEST(SourceFile, holds_items_of_any_kind_in_any_order) {
  const std::string text =
      "schedule s for p on m {\n  tile(A, [2]) -> a0, a1\n}\n"
      "mesh m = x:2, y:3\n"
      "topo t {\n  gpu h200 sm=132\n}\n"
      "mesh n = x:2\n";
  const Checked<SourceFile> file = parse_source(text);
  ASSERT_TRUE(file.ok()) << render(file.error());
  EXPECT_EQ(print(*file), text);
  EXPECT_EQ(items_of<Mesh>(*file).size(), 2U);
  ASSERT_NE(find_item<Mesh>(*file, "n"), nullptr);
  EXPECT_EQ(find_item<Mesh>(*file, "n")->axes.size(), 1U);
  EXPECT_EQ(find_item<Script>(*file, "m"), nullptr);
}

TEST(SourceFile, reads_back_what_it_prints) {
  const Checked<SourceFile> again = parse_source(print(example_file()));
  ASSERT_TRUE(again.ok()) << render(again.error());
  EXPECT_EQ(*again, example_file());
}

TEST(SourceFile, refuses_what_starts_no_item) {
  EXPECT_EQ(refuse("mesh m = x:2\nplan p"),
            "error[T001]: f.sched:2:1: expected `topo`, `mesh`, `program`, `commir` or `schedule`, "
            "found `plan`");
}

TEST(SourceFile, refuses_a_name_twice_within_a_kind) {
  EXPECT_EQ(refuse("mesh m = x:2\nschedule m for p on m {}\nmesh m = y:2"),
            "error[S027]: f.sched:3:1: two items called `m` of kind mesh; rename one");
}

}  // namespace source_file_test
}  // namespace harpe
