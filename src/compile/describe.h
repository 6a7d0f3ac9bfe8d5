#pragma once

#include <string>
#include <vector>

#include "ir/program.h"

namespace harpe {

// A template from the caller's view: its parameters, and its input and output tensors.

struct ParameterText {
  std::string name;
  std::string kind;   // "integer", "bool", …
  std::string value;  // the default; the name of another parameter whose value it takes
};

struct BufferText {
  std::string name;
  std::string role;
  std::string dtype;               // or the parameter that determines it
  std::vector<std::string> shape;  // per dimension, in terms of the parameters
  std::string condition;           // for an input: the parameter that it requires; or ""
  std::string derived;             // for an input: its value if none is given; "" if it is drawn
};

struct Description {
  std::string name;
  std::string summary;  // "" for a program that is not shipped
  std::vector<ParameterText> parameters;
  std::vector<BufferText> buffers;  // without temporaries
};

[[nodiscard]] Description describe(const Program& program);

}  // namespace harpe
