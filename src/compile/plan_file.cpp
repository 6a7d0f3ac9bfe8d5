#include "compile/plan_file.h"

#include <optional>
#include <string_view>

#include "lower/lower.h"
#include "plan/text.h"
#include "support/hash.h"
#include "support/lexer.h"

namespace harpe {
namespace {

struct Parts {
  std::string_view header;   // the first line
  std::string_view subject;  // program, mesh and normal form
  std::string_view block;    // from `plan` on
};

Parts split(std::string_view text) {
  const std::size_t header = std::min(text.find('\n'), text.size());
  const std::size_t found = text.find("\nplan ", header);
  const std::size_t block = found == std::string_view::npos ? text.size() : found + 1;
  const std::size_t body = std::min(header + 1, block);
  return {text.substr(0, header), text.substr(body, block - body), text.substr(block)};
}

std::string with_header(const std::string& body) {
  return "plan version " + std::to_string(kPlanVersion) + " hash \"" + hash_text(body) + "\"\n" +
         body;
}

std::string title_of(const Plan& plan) {
  return "plan " + plan.form.name + " for " + plan.program.name + " on " + plan.mesh.name;
}

// `plan NAME for PROGRAM on MESH derived "HASH"`: the title and the hash; none for other texts.
struct Derived {
  std::string title;
  std::string hash;
};
std::optional<Derived> parse_derived(std::string_view block) {
  constexpr std::string_view kDerived = " derived ";
  const std::string_view line = block.substr(0, block.find('\n'));
  const std::size_t at = line.find(kDerived);
  if (at == std::string_view::npos) return std::nullopt;
  Checked<Cursor> cursor = Cursor::open(line.substr(at + kDerived.size()));
  if (!cursor.ok()) return std::nullopt;
  Checked<std::string> hash = cursor->expect_string("a hash");
  if (!hash.ok() || !cursor->at_end()) return std::nullopt;
  return Derived{std::string(line.substr(0, at)), std::move(hash).value()};
}

}  // namespace

std::string print_plan_file(const Plan& plan) {
  const std::string whole = print_plan(plan);
  if (plan.mesh.ranks() <= kMaxWrittenRanks) return whole;
  const Parts parts = split(whole);
  return with_header(std::string(parts.subject) + title_of(plan) + " derived \"" +
                     hash_text(parts.block) + "\"\n");
}

Checked<Plan> parse_plan_file(const std::string& text, const std::string& path) {
  const Parts parts = split(text);
  const std::optional<Derived> derived = parse_derived(parts.block);
  // A first line that Harpe would not write is refused; parse_plan reports the reason.
  if (!derived || with_header(std::string(parts.subject) + std::string(parts.block)) != text) {
    return parse_plan(text, path);
  }
  const std::string empty = std::string(parts.subject) + derived->title + " {\n}\n";
  HP_TRY(const Plan subject, parse_plan(with_header(empty), path));
  HP_TRY(Plan plan, lower(subject.program, subject.mesh, subject.form));
  if (hash_text(split(print_plan(plan)).block) != derived->hash) {
    return make_diag(DiagCode::I402, {{"path", path}});
  }
  return plan;
}

}  // namespace harpe
