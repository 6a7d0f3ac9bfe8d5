#pragma once

#include <map>
#include <string>

#include "ir/program.h"
#include "support/diag.h"

namespace harpe {

// Values for parameters, by name, as the command line or a caller writes them.
using Bindings = std::map<std::string, Scalar>;

// template + values -> ground program: parameters substituted (defaults for the rest), sizes
// evaluated, masks and inputs under conditions kept or dropped (with the axes that
// only such inputs have), then check_program.
// Errors: P101 unknown parameter (with the nearest name), P102 value of the wrong kind, P103 size
// below 1 or above 2^40, P104 division with a remainder, and check_program's.
[[nodiscard]] Checked<Program> instantiate(const Program& program, const Bindings& bindings);

// Well-formedness of a ground program: names unique per kind and resolved, no buffer indexed twice
// by an axis, targets and operands covered by the nest's axes, lse statements with an (o, l) pair
// of targets, masks known with axes of the nest, leaves known with the arity of their contract.
[[nodiscard]] Checked<Ok> check_program(const Program& program);

}  // namespace harpe
