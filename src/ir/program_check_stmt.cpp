#include "ir/program_check.h"

#include <algorithm>

#include "ir/text.h"

namespace harpe {
namespace {

class StmtChecker {
 public:
  StmtChecker(const Program& program, const Nest& nest, const Stmt& stmt)
      : program_(program), nest_(nest), stmt_(stmt) {}

  Checked<Ok> check() const {
    for (const Access& target : stmt_.targets) {
      HP_REQUIRE_OK(check_access(target));
      if (find_buffer(program_, target.buffer)->role == Role::In) {
        return make_diag(DiagCode::P014, {{"nest", nest_.name}, {"name", target.buffer}});
      }
    }
    for (const Access& operand : stmt_.operands) HP_REQUIRE_OK(check_access(operand));
    HP_REQUIRE_OK(check_lse());
    return check_masks(program_, nest_, stmt_);
  }

 private:
  [[nodiscard]] bool has_axis(const std::string& axis) const {
    return is_listed(nest_.over, axis) || is_listed(nest_.whole, axis);
  }

  [[nodiscard]] Diag unknown(std::string_view kind, const std::string& name,
                             const std::vector<std::string>& candidates) const {
    return make_diag(DiagCode::P002, {{"where", "nest `" + nest_.name + "`"},
                                      {"kind", kind},
                                      {"name", name},
                                      {"hint", suggestion(name, candidates)}});
  }

  [[nodiscard]] Checked<Ok> require_axis(const Access& access, const std::string& axis) const {
    if (has_axis(axis)) return Ok{};
    return make_diag(DiagCode::P004,
                     {{"nest", nest_.name}, {"buffer", access.buffer}, {"name", axis}});
  }

  // `T=R.T`: the route gives the position along T from all axes of its other side.
  [[nodiscard]] Checked<Ok> check_routed(const Access& access, const Rename& rename) const {
    const Route* const route = find_route(program_, rename.source);
    if (route == nullptr) {
      std::vector<std::string> routes;
      for (const Decl& decl : program_.decls) {
        if (const auto* const known = std::get_if<Route>(&decl)) routes.push_back(known->name);
      }
      return unknown("route", rename.source, routes);
    }
    const bool is_choice = is_listed(route->choices, rename.member);
    if (!is_choice && !is_listed(route->slots, rename.member)) {
      std::vector<std::string> members = route->slots;
      members.insert(members.end(), route->choices.begin(), route->choices.end());
      return make_diag(DiagCode::P013, {{"nest", nest_.name},
                                        {"route", route->name},
                                        {"name", rename.member},
                                        {"hint", suggestion(rename.member, members)}});
    }
    for (const std::string& axis : is_choice ? route->slots : route->choices) {
      HP_REQUIRE_OK(require_axis(access, axis));
    }
    return Ok{};
  }

  [[nodiscard]] Checked<Ok> check_access(const Access& access) const {
    const Buffer* const buffer = find_buffer(program_, access.buffer);
    if (buffer == nullptr) {
      std::vector<std::string> buffers;
      for (const Buffer* const known : buffers_of(program_)) buffers.push_back(known->name);
      return unknown("buffer", access.buffer, buffers);
    }
    if (!buffer->condition.empty()) {
      return make_diag(
          DiagCode::P031,
          {{"nest", nest_.name}, {"name", access.buffer}, {"condition", buffer->condition}});
    }
    std::vector<std::string> axes = axis_names(*buffer);
    for (const Rename& rename : access.renames) {
      if (!is_listed(axes, rename.axis)) {
        return make_diag(DiagCode::P012, {{"nest", nest_.name},
                                          {"buffer", access.buffer},
                                          {"name", rename.axis},
                                          {"hint", suggestion(rename.axis, axes)}});
      }
    }
    return check_indices(access, axes);
  }

  [[nodiscard]] Checked<Ok> check_indices(const Access& access,
                                          const std::vector<std::string>& axes) const {
    std::vector<std::string> used;
    for (const std::string& axis : axes) {
      const auto rename = std::ranges::find(access.renames, axis, &Rename::axis);
      std::string index = axis;
      if (rename != access.renames.end()) {
        index = rename->source + (rename->member.empty() ? "" : "." + rename->member);
      }
      if (rename != access.renames.end() && !rename->member.empty()) {
        HP_REQUIRE_OK(check_routed(access, *rename));
      } else {
        HP_REQUIRE_OK(require_axis(access, index));
      }
      if (is_listed(used, index) || std::ranges::count(access.renames, axis, &Rename::axis) > 1) {
        const std::string where = "nest `" + nest_.name + "`, `" + access.buffer + "`";
        return make_diag(DiagCode::P003, {{"where", where}, {"name", index}});
      }
      used.push_back(index);
    }
    return Ok{};
  }

  [[nodiscard]] Checked<Ok> check_lse() const {
    if (stmt_.monoid != Monoid::Lse) return Ok{};
    const auto refused = [&](const std::string& reason, const std::string& name) {
      return make_diag(DiagCode::P006, {{"nest", nest_.name}, {"reason", reason}, {"name", name}});
    };
    if (stmt_.targets.size() != 2) {
      return refused("found " + std::to_string(stmt_.targets.size()),
                     stmt_.targets.empty() ? "" : stmt_.targets.front().buffer);
    }
    const Buffer* const result = find_buffer(program_, stmt_.targets[0].buffer);
    const Buffer* const logarithm = find_buffer(program_, stmt_.targets[1].buffer);
    const std::vector<std::string> axes = axis_names(*result);
    for (const std::string& axis : axis_names(*logarithm)) {
      if (is_listed(axes, axis)) continue;
      return refused(
          "axis `" + axis + "` of `" + logarithm->name + "` is not one of `" + result->name + "`",
          logarithm->name);
    }
    return Ok{};
  }

  const Program& program_;
  const Nest& nest_;
  const Stmt& stmt_;
};

}  // namespace

Checked<Ok> check_stmt(const Program& program, const Nest& nest, const Stmt& stmt) {
  return StmtChecker(program, nest, stmt).check();
}

Checked<Ok> check_given(const Program& program, const Nest& nest, const Stmt& stmt) {
  for (const std::vector<Access>* accesses : {&stmt.targets, &stmt.operands}) {
    for (const Access& access : *accesses) {
      const Buffer* const buffer = find_buffer(program, access.buffer);
      if (buffer == nullptr || buffer->role == Role::In) continue;
      return make_diag(
          DiagCode::P025,
          {{"nest", nest.name}, {"name", buffer->name}, {"role", print(buffer->role)}});
    }
  }
  return Ok{};
}

}  // namespace harpe
