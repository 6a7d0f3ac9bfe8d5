#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "support/lexer.h"

namespace harpe {

// A schedule as a list of primitives with their arguments (commir.md 3). Users and the named
// schedules write scripts; `replay` turns them into normal forms.

// `fwd`, `fwd.k0`.
struct Path {
  std::vector<std::string> parts;
  friend bool operator==(const Path&, const Path&) = default;
};

// `"fa_fwd_sm90"`.
struct Quoted {
  std::string text;
  friend bool operator==(const Quoted&, const Quoted&) = default;
};

// `sval = path | INT | FLOAT | STRING | "[" [ sval { "," sval } ] "]"`.
struct Value {
  std::variant<Path, std::int64_t, double, Quoted, std::vector<Value>> value;
  friend bool operator==(const Value& a, const Value& b) { return a.value == b.value; }
};

struct Argument {
  std::string keyword;  // "" for an argument by position
  Value value;
  friend bool operator==(const Argument&, const Argument&) = default;
};

// `tile(Sq, [2, 8]) -> q0, q1, q2`.
struct Step {
  std::string primitive;
  std::vector<Argument> arguments;
  std::vector<std::string> outputs;
  friend bool operator==(const Step&, const Step&) = default;
};

// `schedule NAME for PROGRAM on MESH { steps }`.
struct Script {
  std::string name;
  std::string program;
  std::string mesh;
  std::vector<Step> steps;
  friend bool operator==(const Script&, const Script&) = default;
};

// Canonical text. A step prints without a newline, a script ends with one.
[[nodiscard]] std::string print(const Value& value);
[[nodiscard]] std::string print(const Step& step);
[[nodiscard]] std::string print(const Script& script);

// Starts at the keyword `schedule`. parse_script(print(s)) == s.
// Errors: T001, T003.
[[nodiscard]] Checked<Script> parse_script(Cursor& cursor);

}  // namespace harpe
