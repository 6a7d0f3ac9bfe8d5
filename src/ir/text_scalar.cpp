#include "ir/text.h"

#include "ir/text_parts.h"

namespace harpe {
namespace text {

std::string print_names(const std::vector<std::string>& names) {
  return join(names, ", ", [](const std::string& name) { return name; });
}

std::string quote(const std::string& content) { return '"' + content + '"'; }

Diag unknown_word(const Cursor& cursor, const Token& token, std::string_view kind,
                  const std::vector<std::string>& words) {
  const std::string list = join(words, " ", [](const std::string& w) { return '`' + w + '`'; });
  return cursor.locate(make_diag(DiagCode::T005, {{"kind", kind},
                                                  {"name", token.text},
                                                  {"hint", suggestion(token.text, words)},
                                                  {"words", list}}),
                       token);
}

Diag given_twice(const Cursor& cursor, const Token& token, std::string_view item) {
  return cursor.locate(make_diag(DiagCode::T006, {{"name", token.text}, {"item", item}}), token);
}

Checked<DType> parse_dtype_word(Cursor& cursor) {
  return parse_word(cursor, "dtype", parse_dtype, DType::Bool);
}

Checked<Monoid> parse_monoid_word(Cursor& cursor) {
  return parse_word(cursor, "monoid", parse_monoid, Monoid::Lse);
}

}  // namespace text

std::string print(const Scalar& scalar) {
  if (const auto* const integer = std::get_if<std::int64_t>(&scalar)) {
    return std::to_string(*integer);
  }
  if (const auto* const real = std::get_if<double>(&scalar)) return print_double(*real);
  if (const auto* const content = std::get_if<std::string>(&scalar)) return text::quote(*content);
  return std::get<Name>(scalar).text;
}

std::string print(const Call& call) {
  return call.function + "(" +
         text::join(call.args, ", ", [](const Scalar& arg) { return print(arg); }) + ")";
}

std::string print(const Poly& poly) {
  std::string out = print(poly.first);
  for (const Poly::Term& term : poly.rest) {
    out += term.op == '+' ? " + " : std::string(1, term.op);
    out += print(term.value);
  }
  return out;
}

std::string print_mesh_ref(const MeshRef& axes) {
  return axes.size() == 1 ? axes.front() : "(" + text::print_names(axes) + ")";
}

Checked<Scalar> parse_scalar(Cursor& cursor) {
  if (cursor.at(TokenKind::Integer)) {
    HP_TRY(const std::int64_t value, cursor.expect_integer("a number"));
    return Scalar(value);
  }
  if (cursor.at(TokenKind::Float)) {
    HP_TRY(const double value, cursor.expect_number("a number"));
    return Scalar(value);
  }
  if (cursor.at(TokenKind::String)) return Scalar(std::string(cursor.take().text));
  HP_TRY(std::string name, cursor.expect_identifier("a number, a string or a name"));
  return Scalar(Name{std::move(name)});
}

Checked<Call> parse_call(Cursor& cursor) {
  return text::parse_call_of(cursor, [&] { return parse_scalar(cursor); });
}

Checked<MeshRef> parse_mesh_ref(Cursor& cursor) {
  if (!cursor.accept("(")) {
    HP_TRY(std::string axis, cursor.expect_identifier("a mesh axis"));
    return MeshRef{std::move(axis)};
  }
  HP_TRY(MeshRef axes,
         text::parse_list(cursor, [&] { return cursor.expect_identifier("a mesh axis"); }));
  HP_REQUIRE_OK(cursor.expect(")"));
  return axes;
}

}  // namespace harpe
