#include "schedule/script.h"

namespace harpe {
namespace {

std::string join_names(const std::vector<std::string>& names, std::string_view separator) {
  std::string out;
  for (const std::string& name : names) {
    if (!out.empty()) out += separator;
    out += name;
  }
  return out;
}

Checked<Value> parse_value(Cursor& cursor) {
  if (cursor.accept("[")) {
    std::vector<Value> list;
    while (!cursor.at("]")) {
      HP_TRY(Value item, parse_value(cursor));
      list.push_back(std::move(item));
      if (!cursor.accept(",")) break;
    }
    HP_REQUIRE_OK(cursor.expect("]"));
    return Value{std::move(list)};
  }
  if (cursor.at(TokenKind::Integer)) {
    HP_TRY(const std::int64_t number, cursor.expect_integer("an integer"));
    return Value{number};
  }
  if (cursor.at(TokenKind::Float)) {
    HP_TRY(const double number, cursor.expect_number("a number"));
    return Value{number};
  }
  if (cursor.at(TokenKind::String)) return Value{Quoted{std::string(cursor.take().text)}};
  Path path;
  do {
    HP_TRY(std::string part, cursor.expect_identifier("a name, a number, a string or `[`"));
    path.parts.push_back(std::move(part));
  } while (cursor.accept("."));
  return Value{std::move(path)};
}

Checked<Argument> parse_argument(Cursor& cursor) {
  Argument argument;
  if (cursor.at(TokenKind::Identifier) && cursor.peek(1).text == "=") {
    argument.keyword = std::string(cursor.take().text);
    cursor.take();
  }
  HP_TRY(argument.value, parse_value(cursor));
  return argument;
}

Checked<Step> parse_step(Cursor& cursor) {
  Step step;
  HP_TRY(step.primitive, cursor.expect_identifier("a primitive or `}`"));
  HP_REQUIRE_OK(cursor.expect("("));
  while (!cursor.at(")")) {
    HP_TRY(Argument argument, parse_argument(cursor));
    step.arguments.push_back(std::move(argument));
    if (!cursor.accept(",")) break;
  }
  HP_REQUIRE_OK(cursor.expect(")"));
  if (!cursor.accept("->")) return step;
  do {
    HP_TRY(std::string output, cursor.expect_identifier("a name for a result"));
    step.outputs.push_back(std::move(output));
  } while (cursor.accept(","));
  return step;
}

struct ValuePrinter {
  std::string operator()(const Path& path) const { return join_names(path.parts, "."); }
  std::string operator()(std::int64_t number) const { return std::to_string(number); }
  std::string operator()(double number) const { return print_double(number); }
  std::string operator()(const Quoted& quoted) const { return "\"" + quoted.text + "\""; }
  std::string operator()(const std::vector<Value>& list) const {
    std::vector<std::string> items;
    for (const Value& item : list) items.push_back(print(item));
    return "[" + join_names(items, ", ") + "]";
  }
};

}  // namespace

std::string print(const Value& value) { return std::visit(ValuePrinter{}, value.value); }

std::string print(const Step& step) {
  std::vector<std::string> arguments;
  for (const Argument& argument : step.arguments) {
    const std::string keyword = argument.keyword.empty() ? "" : argument.keyword + "=";
    arguments.push_back(keyword + print(argument.value));
  }
  std::string out = step.primitive + "(" + join_names(arguments, ", ") + ")";
  if (!step.outputs.empty()) out += " -> " + join_names(step.outputs, ", ");
  return out;
}

std::string print(const Script& script) {
  std::string out =
      "schedule " + script.name + " for " + script.program + " on " + script.mesh + " {\n";
  for (const Step& step : script.steps) out += "  " + print(step) + "\n";
  return out + "}\n";
}

Checked<Script> parse_script(Cursor& cursor) {
  Script script;
  HP_REQUIRE_OK(cursor.expect("schedule"));
  HP_TRY(script.name, cursor.expect_identifier("the schedule's name"));
  HP_REQUIRE_OK(cursor.expect("for"));
  HP_TRY(script.program, cursor.expect_identifier("a program's name"));
  HP_REQUIRE_OK(cursor.expect("on"));
  HP_TRY(script.mesh, cursor.expect_identifier("a mesh's name"));
  HP_REQUIRE_OK(cursor.expect("{"));
  while (!cursor.accept("}")) {
    HP_TRY(Step step, parse_step(cursor));
    script.steps.push_back(std::move(step));
  }
  return script;
}

}  // namespace harpe
