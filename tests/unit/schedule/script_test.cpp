#include "schedule/script.h"

#include "tests/unit/schedule/world.h"

namespace harpe {
namespace {

std::string reprint(std::string_view text) {
  Checked<Cursor> cursor = Cursor::open(text, "f");
  if (!cursor.ok()) return render(cursor.error());
  const Checked<Script> script = parse_script(*cursor);
  return script.ok() ? print(*script) : render(script.error());
}

TEST(Script, prints_what_it_parsed) {
  const std::string text =
      "schedule ring for attn on one {\n"
      "  tile(Sq, [2, 8]) -> q0, q1, q2\n"
      "  shift(fwd.k0, [node], 1)\n"
      "  stage(fwd, [K, V], over=[gpu], at=k0, how=relay, by=src)\n"
      "  odd(1, -2, 0.5, \"a b\", [], [[x.y], 3])\n"
      "  empty()\n"
      "}\n";
  EXPECT_EQ(reprint(text), text);
}

TEST(Script, ignores_spaces_and_comments) {
  EXPECT_EQ(reprint("schedule s for p on m{a( b ,c = d )// why\n->e , f}"),
            "schedule s for p on m {\n  a(b, c=d) -> e, f\n}\n");
}

TEST(Script, says_where_the_grammar_is_left) {
  EXPECT_EQ(reprint("schedule s for p {}"), "error[T001]: f:1:18: expected `on`, found `{`");
  EXPECT_EQ(reprint("schedule s for p on m { tile(A, }"),
            "error[T001]: f:1:33: expected a name, a number, a string or `[`, found `}`");
  EXPECT_EQ(reprint("schedule s for p on m { tile(A) -> }"),
            "error[T001]: f:1:36: expected a name for a result, found `}`");
  EXPECT_EQ(reprint("schedule s for p on m { tile(A)"),
            "error[T001]: f:1:32: expected a primitive or `}`, found the end of the text");
}

TEST(Script, parses_equal_values_for_equal_texts) {
  const Script a = script_of("attn", "one", "tile(Sq, [8]) -> q0, q1");
  EXPECT_EQ(a, script_of("attn", "one", "tile( Sq,[ 8 ])->q0,q1"));
  EXPECT_NE(a, script_of("attn", "one", "tile(Sq, [4]) -> q0, q1"));
}

}  // namespace
}  // namespace harpe
