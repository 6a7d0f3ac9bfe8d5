#include "ops/registry.h"

#include <algorithm>
#include <array>

#include "ir/text.h"
#include "ops/texts.h"
#include "support/check.h"

namespace harpe {
namespace {

// The comment that opens the file, without its slashes.
constexpr std::string_view summary_of(std::string_view text) {
  constexpr std::string_view kOpen = "// ";
  return text.substr(kOpen.size(), text.find('\n') - kOpen.size());
}

constexpr Operator make(std::string_view name, std::string_view text) {
  return {.name = name, .summary = summary_of(text), .text = text};
}

constexpr std::array kOperators = {
    make("gemm", op_text::gemm),
    make("ag_gemm", op_text::ag_gemm),
    make("gemm_rs", op_text::gemm_rs),
    make("gemm_ar", op_text::gemm_ar),
    make("gemm_ar_norm", op_text::gemm_ar_norm),
    make("attention", op_text::attention),
    make("attention_bwd", op_text::attention_bwd),
    make("decode", op_text::decode),
    make("moe", op_text::moe),
    make("moe_capped", op_text::moe_capped),
};

}  // namespace

std::span<const Operator> all_operators() { return kOperators; }

const Operator* find_operator(std::string_view name) {
  const auto found = std::ranges::find(kOperators, name, &Operator::name);
  return found == kOperators.end() ? nullptr : &*found;
}

Program template_of(const Operator& op) {
  Checked<Program> program = parse_operator(op.text, std::string(op.name) + ".op");
  HP_CHECK(program.ok(), "shipped operator does not parse: " + render(program.error()));
  HP_CHECK(program->name == op.name,
           "`" + program->name + "` is shipped as `" + std::string(op.name) + "`");
  return std::move(program).value();
}

Checked<Program> parse_operator(std::string_view text, const std::string& file) {
  HP_TRY(Cursor cursor, Cursor::open(text, file));
  HP_TRY(Program program, parse_program(cursor));
  if (!cursor.at_end()) return cursor.unexpected("the end of the file after one program");
  return program;
}

}  // namespace harpe
