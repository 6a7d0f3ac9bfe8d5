#pragma once

#include <string>
#include <vector>

#include "ir/program.h"

namespace harpe {

// A template as a caller sees it: what may be set, and which tensors go in and out.

struct ParameterText {
  std::string name;
  std::string kind;   // "integer", "bool", …
  std::string value;  // of the default; another parameter's name where it follows that one
};

struct BufferText {
  std::string name;
  std::string role;
  std::string dtype;               // or the parameter that names it
  std::vector<std::string> shape;  // per dimension, in terms of the parameters
  std::string condition;  // of an input: the parameter without which it is not there; or ""
  std::string derived;    // of an input: what it is where the caller gives none; "" for a drawn one
};

struct Description {
  std::string name;
  std::string summary;  // "" for a program that is not shipped
  std::vector<ParameterText> parameters;
  std::vector<BufferText> buffers;  // without temporaries
};

[[nodiscard]] Description describe(const Program& program);

}  // namespace harpe
