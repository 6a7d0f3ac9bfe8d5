#pragma once

#include <string>
#include <vector>

#include "compile/session.h"
#include "ir/text.h"
#include "lower/lower.h"

namespace harpe {

// The plan of an operator such as "gemm m=8 …", a mesh and a schedule. Every intermediate text is
// printed, parsed and compared.
inline Plan make_plan(const std::string& op, const std::vector<std::string>& parameters,
                      const std::string& mesh, const std::string& schedule) {
  Session session(true);
  Checked<Plan> plan =
      session.plan({.target = op, .parameters = parameters, .mesh = mesh, .schedule = schedule});
  HP_CHECK(plan.ok(), render(plan.error()));
  return std::move(plan).value();
}

// The plan of a program, a mesh and a normal form, given as texts.
inline Plan lower_texts(const std::string& program, const std::string& mesh,
                        const std::string& form) {
  const auto parse = [](const std::string& text, auto read) {
    Checked<Cursor> cursor = Cursor::open(text);
    HP_CHECK(cursor.ok(), render(cursor.error()));
    auto value = read(cursor.value());
    HP_CHECK(value.ok(), render(value.error()));
    return std::move(value).value();
  };
  Checked<Plan> plan =
      lower(parse(program, &parse_program), parse(mesh, &parse_mesh), parse(form, &parse_form));
  HP_CHECK(plan.ok(), render(plan.error()));
  return std::move(plan).value();
}

}  // namespace harpe
