#include <algorithm>

#include "ir/blocks.h"
#include "ir/instantiate.h"
#include "ir/text.h"
#include "plan/text.h"
#include "plan/text_items.h"
#include "plan/text_lines.h"
#include "support/hash.h"
#include "support/lexer.h"

namespace harpe {
namespace {

using plan_text::expect_end_of_line;
using plan_text::TextLines;

// Checks the first line against the text below it.
Checked<Ok> check_header(std::string_view header, std::string_view body, const std::string& file) {
  HP_TRY(Cursor cursor, Cursor::open(header, file));
  HP_REQUIRE_OK(cursor.expect("plan"));
  HP_REQUIRE_OK(cursor.expect("version"));
  const Token version_token = cursor.peek();
  HP_TRY(const std::int64_t version, cursor.expect_integer("a version"));
  if (version < 1 || version > kPlanVersion) {
    return cursor.locate(
        make_diag(DiagCode::V102,
                  {{"what", "plan"}, {"found", version}, {"supported", kPlanVersion}}),
        version_token);
  }
  HP_REQUIRE_OK(cursor.expect("hash"));
  const Token hash_token = cursor.peek();
  HP_TRY(const std::string hash, cursor.expect_string("a hash"));
  HP_REQUIRE_OK(expect_end_of_line(cursor));
  const std::string computed = hash_text(body);
  if (hash == computed) return Ok{};
  return cursor.locate(make_diag(DiagCode::V101, {{"found", hash}, {"computed", computed}}),
                       hash_token);
}

// Diagnostics about a whole item have no position; they get the item's.
template <class T>
Checked<T> at_item(const Cursor& cursor, const Token& item, Checked<T> result) {
  if (result.ok() || result.error().where) return result;
  return cursor.locate(std::move(result).error(), item);
}

// Parses program, mesh and normal form: the text between the first line and the plan's block.
Checked<Blocks> parse_subject(Cursor& cursor, Plan& plan) {
  const Token program = cursor.peek();
  HP_TRY(plan.program, parse_program(cursor));
  if (!is_ground(plan.program)) {
    return cursor.locate(make_diag(DiagCode::V107, {{"program", plan.program.name}}), program);
  }
  HP_REQUIRE_OK(at_item(cursor, program, check_program(plan.program)));
  const Token mesh = cursor.peek();
  HP_TRY(plan.mesh, parse_mesh(cursor));
  HP_REQUIRE_OK(at_item(cursor, mesh, check_mesh(plan.mesh)));
  const Token form = cursor.peek();
  HP_TRY(plan.form, parse_form(cursor));
  return at_item(cursor, form, Blocks::make(plan.program, plan.mesh, plan.form));
}

Checked<Ok> expect_name(Cursor& line, std::string_view what, const std::string& name) {
  const Token token = line.peek();
  HP_TRY(const std::string found, line.expect_identifier(what));
  if (found == name) return Ok{};
  return line.locate(make_diag(DiagCode::V104, {{"what", what},
                                                {"name", found},
                                                {"where", "this file, which holds `" + name + "`"},
                                                {"hint", ""}}),
                     token);
}

Checked<Ok> parse_title(Cursor& line, const Plan& plan) {
  HP_REQUIRE_OK(line.expect("plan"));
  HP_REQUIRE_OK(expect_name(line, "normal form", plan.form.name));
  HP_REQUIRE_OK(line.expect("for"));
  HP_REQUIRE_OK(expect_name(line, "program", plan.program.name));
  HP_REQUIRE_OK(line.expect("on"));
  HP_REQUIRE_OK(expect_name(line, "mesh", plan.mesh.name));
  HP_REQUIRE_OK(line.expect("{"));
  return expect_end_of_line(line);
}

// Parses the plan's block, up to the end of the text.
Checked<Ok> parse_block(TextLines& lines, const Blocks& blocks, Plan& plan) {
  PlanItemParser items(blocks, plan);
  bool titled = false;
  bool ended = false;
  while (true) {
    HP_TRY(std::optional<Cursor> line, lines.next());
    if (!line) return ended ? Checked<Ok>(Ok{}) : lines.missing("`}`");
    if (ended) return lines.placed(line->unexpected("the end of the text"));
    ended = titled && line->accept("}");
    const Checked<Ok> done = ended    ? expect_end_of_line(*line)
                             : titled ? items.parse_item(*line)
                                      : parse_title(*line, plan);
    if (!done.ok()) return lines.placed(done.error());
    titled = true;
  }
}

}  // namespace

Checked<Plan> parse_plan(std::string_view text, const std::string& file) {
  const std::size_t header = std::min(text.find('\n'), text.size());
  const std::size_t body = std::min(header + 1, text.size());
  HP_REQUIRE_OK(check_header(text.substr(0, header), text.substr(body), file));
  // No line above the block can begin so: see docs/plan.md.
  const std::size_t found = text.find("\nplan ", header);
  const std::size_t block = found == std::string_view::npos ? text.size() : found + 1;
  HP_TRY(Cursor cursor, Cursor::open(text.substr(0, block), file));
  while (cursor.peek().line == 1 && !cursor.at_end()) cursor.take();
  Plan plan;
  HP_TRY(const Blocks blocks, parse_subject(cursor, plan));
  if (!cursor.at_end() || block == text.size()) return cursor.unexpected("`plan`");
  const std::int64_t line =
      1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(block), '\n');
  TextLines lines(text.substr(block), line, file);
  HP_REQUIRE_OK(parse_block(lines, blocks, plan));
  return plan;
}

}  // namespace harpe
