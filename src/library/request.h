#pragma once

#include <string>

#include "compile/session.h"
#include "harpe/question.h"
#include "library/boundary.h"

namespace harpe::library {

// Converts a question to a session's request. Errors: U119 the schedule is a plan's text or file.
[[nodiscard]] harpe::Checked<Request> make_request(const v1::Question& question, Call& call);
// A request for an operator alone, as in Question::op.
[[nodiscard]] harpe::Checked<Request> make_subject(const std::string& op);
// Sets the machine alone, as in Question::machine.
void set_machine(Request& request, const std::string& machine);

// "0.1.0+3fa29c41d7e0"
[[nodiscard]] std::string build_version();

}  // namespace harpe::library
