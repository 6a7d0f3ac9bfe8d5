#include <algorithm>

#include "search/search.h"

namespace harpe {
namespace {

const Stmt* statement_of(const Nest& nest, const std::string& target) {
  for (const Stmt& stmt : nest.stmts) {
    if (std::ranges::find(stmt.targets, target, &Access::buffer) != stmt.targets.end()) {
      return &stmt;
    }
  }
  return nullptr;
}

// True for a partial sum that is sent in fewer bits than it is kept in.
bool is_rounded(const Program& program, const Nest& nest, const Move& move) {
  if (move.kind != MoveKind::Drain) return false;
  const Stmt* stmt = statement_of(nest, move.buffer);
  if (stmt == nullptr || stmt->monoid != Monoid::Sum) return false;
  const DType dtype = find_buffer(program, move.buffer)->dtype;
  return move.wire.value_or(dtype) != state_dtype(dtype);
}

std::string axis_of_digit(const NormalForm& form, const std::string& digit) {
  for (const Split& split : form.splits) {
    if (std::ranges::find(split.digits, digit, &Digit::name) != split.digits.end()) {
      return split.axis;
    }
  }
  return "";
}

// True if several ranks or steps contribute to one sum.
bool is_regrouped(const Program& program, const NormalForm& form, const Nest& nest,
                  const std::string& digit) {
  const std::string axis = axis_of_digit(form, digit);
  return std::ranges::any_of(nest.stmts, [&](const Stmt& stmt) {
    if (stmt.monoid == Monoid::Store || stmt.monoid == Monoid::Max) return false;
    return std::ranges::any_of(stmt.targets, [&](const Access& target) {
      const auto axes = axis_names(*find_buffer(program, target.buffer));
      return std::ranges::find(axes, axis) == axes.end();
    });
  });
}

}  // namespace

NumericsClass numerics_of(const Program& program, const NormalForm& form) {
  NumericsClass worst = NumericsClass::Exact;
  for (const NestForm& nest_form : form.nests) {
    const Nest& nest = *find_nest(program, nest_form.nest);
    for (const NestItem& item : nest_form.items) {
      NumericsClass here = NumericsClass::Exact;
      if (const auto* move = std::get_if<Move>(&item)) {
        if (is_rounded(program, nest, *move)) here = NumericsClass::Rounded;
      } else {
        const auto* par = std::get_if<Par>(&item);
        const std::string& digit = par != nullptr ? par->digit : std::get<For>(item).digit;
        if (is_regrouped(program, form, nest, digit)) here = NumericsClass::Reassociated;
      }
      worst = std::max(worst, here);
    }
  }
  return worst;
}

std::string_view print(NumericsClass numerics) {
  switch (numerics) {
    case NumericsClass::Exact:
      return "exact";
    case NumericsClass::Reassociated:
      return "reassociated";
    case NumericsClass::Rounded:
      return "rounded";
  }
  return "";
}

}  // namespace harpe
