#include <algorithm>

#include "ir/blocks.h"
#include "ir/instantiate.h"
#include "ir/text.h"
#include "plan/text.h"
#include "plan/text_items.h"
#include "support/hash.h"
#include "support/lexer.h"

namespace harpe {
namespace {

// The first line, against the text below it.
Checked<Ok> check_header(std::string_view header, std::string_view body, const std::string& file) {
  HP_TRY(Cursor cursor, Cursor::open(header, file));
  HP_REQUIRE_OK(cursor.expect("plan"));
  HP_REQUIRE_OK(cursor.expect("version"));
  const Token version_token = cursor.peek();
  HP_TRY(const std::int64_t version, cursor.expect_integer("a version"));
  if (version < 1 || version > kPlanVersion) {
    return cursor.locate(
        make_diag(DiagCode::V102, {{"found", version}, {"supported", kPlanVersion}}),
        version_token);
  }
  HP_REQUIRE_OK(cursor.expect("hash"));
  const Token hash_token = cursor.peek();
  HP_TRY(const std::string hash, cursor.expect_string("a hash"));
  if (!cursor.at_end()) return cursor.unexpected("the end of the line");
  const std::string computed = hash_text(body);
  if (hash == computed) return Ok{};
  return cursor.locate(make_diag(DiagCode::V101, {{"found", hash}, {"computed", computed}}),
                       hash_token);
}

// Checks of a whole item know no place: they are shown where the item begins.
template <class T>
Checked<T> at_item(const Cursor& cursor, const Token& item, Checked<T> result) {
  if (result.ok() || result.error().where) return result;
  return cursor.locate(std::move(result).error(), item);
}

// Program, mesh and normal form: everything between the first line and the plan's block.
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
  if (!line.at_end()) return line.unexpected("the end of the line");
  return Ok{};
}

// The plan's block, a line at a time: a million tasks never stand in memory as tokens.
class BlockReader {
 public:
  BlockReader(std::string_view text, std::int64_t first_line, const std::string& file)
      : rest_(text), line_(first_line - 1), file_(file) {}

  Checked<Ok> read(const Blocks& blocks, Plan& plan) {
    PlanItemParser items(blocks, plan);
    bool titled = false;
    while (!rest_.empty()) {
      const std::string_view line = next_line();
      Checked<Cursor> cursor = Cursor::open(line, file_);
      if (!cursor.ok()) return placed(std::move(cursor).error());
      if (cursor->at_end()) continue;
      if (titled && cursor->accept("}")) return end(*cursor);
      const Checked<Ok> done = titled ? items.parse_item(*cursor) : parse_title(*cursor, plan);
      if (!done.ok()) return placed(done.error());
      titled = true;
    }
    return missing_brace();
  }

 private:
  std::string_view next_line() {
    const std::size_t length = std::min(rest_.find('\n'), rest_.size());
    const std::string_view line = rest_.substr(0, length);
    rest_.remove_prefix(std::min(length + 1, rest_.size()));
    ++line_;
    return line;
  }

  Checked<Ok> end(const Cursor& cursor) {
    if (!cursor.at_end()) return placed(cursor.unexpected("the end of the line"));
    while (!rest_.empty()) {
      const std::string_view line = next_line();
      const Checked<Cursor> after = Cursor::open(line, file_);
      if (!after.ok()) return placed(after.error());
      if (!after->at_end()) return placed(after->unexpected("the end of the text"));
    }
    return Ok{};
  }

  [[nodiscard]] Diag missing_brace() const {
    Diag diag = make_diag(DiagCode::T001, {{"expected", "`}`"}, {"found", "the end of the text"}});
    diag.where = SourcePosition{file_, line_ + 1, 1};
    return diag;
  }

  // From a position in one line, whose end looked like the text's, to one in the file.
  [[nodiscard]] Diag placed(Diag diag) const {
    HP_CHECK(diag.where.has_value(), render(diag));
    diag.where->line = line_;
    for (DiagArg& arg : diag.args) {
      if (arg.name == "found" && arg == DiagArg("found", "the end of the text")) {
        arg = DiagArg("found", "the end of the line");
      }
    }
    return diag;
  }

  std::string_view rest_;
  std::int64_t line_;
  const std::string& file_;
};

}  // namespace

Checked<Plan> parse_plan(std::string_view text, const std::string& file) {
  const std::size_t header = std::min(text.find('\n'), text.size());
  const std::size_t body = std::min(header + 1, text.size());
  HP_REQUIRE_OK(check_header(text.substr(0, header), text.substr(body), file));
  // No item above the block can have a line that begins so: see docs/plan.md.
  const std::size_t found = text.find("\nplan ", header);
  const std::size_t block = found == std::string_view::npos ? text.size() : found + 1;
  HP_TRY(Cursor cursor, Cursor::open(text.substr(0, block), file));
  while (cursor.peek().line == 1 && !cursor.at_end()) cursor.take();
  Plan plan;
  HP_TRY(const Blocks blocks, parse_subject(cursor, plan));
  if (!cursor.at_end() || block == text.size()) return cursor.unexpected("`plan`");
  const std::int64_t line =
      1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(block), '\n');
  HP_REQUIRE_OK(BlockReader(text.substr(block), line, file).read(blocks, plan));
  return plan;
}

}  // namespace harpe
