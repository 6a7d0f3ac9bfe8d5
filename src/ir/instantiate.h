#pragma once

#include <map>
#include <string>

#include "ir/program.h"
#include "support/diag.h"

namespace harpe {

// Parameter values by name, as the command line or a caller gives them.
using Bindings = std::map<std::string, Scalar>;

// template + values -> ground program: substitutes parameters (defaults for the missing ones),
// evaluates sizes, keeps or drops masks and inputs under conditions (and axes that only dropped
// inputs have), then runs check_program.
// Errors: P101 unknown parameter (with the nearest name), P102 value of the wrong kind, P103 size
// below 1 or above 2^40, P104 division with a remainder, and check_program's.
[[nodiscard]] Checked<Program> instantiate(const Program& program, const Bindings& bindings);

// Well-formedness of a ground program: names are unique per kind and resolved; no axis indexes a
// buffer twice; the nest's axes cover targets and operands; lse statements have an (o, l) pair of
// targets; masks are known and use axes of the nest; leaves are known and have their contract's
// arity.
[[nodiscard]] Checked<Ok> check_program(const Program& program);

}  // namespace harpe
