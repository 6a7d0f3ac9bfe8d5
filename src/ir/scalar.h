#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace harpe {

// A name used as a value: a parameter, an axis, a mode.
struct Name {
  std::string text;
  friend bool operator==(const Name&, const Name&) = default;
};

// `scalar = INT | FLOAT | STRING | IDENT`.
using Scalar = std::variant<std::int64_t, double, std::string, Name>;

// `f(a, b, 3)`: masks, layouts, load profiles, visiting orders.
struct Call {
  std::string function;
  std::vector<Scalar> args;
  friend bool operator==(const Call&, const Call&) = default;
};

// `poly = scalar { ("*" | "+" | "/") scalar }`, as written: first scalar, then (operator, scalar).
// `*` and `/` bind tighter than `+`; `/` must divide exactly.
struct Poly {
  struct Term {
    char op;
    Scalar value;
    friend bool operator==(const Term&, const Term&) = default;
  };
  Scalar first;
  std::vector<Term> rest;
  friend bool operator==(const Poly&, const Poly&) = default;
};

}  // namespace harpe
