#include "search/constraints.h"

#include "ir/blocks.h"
#include "search/problem.h"

namespace harpe {
namespace {

Diag breaks(const std::string& what, const std::string& wanted, const std::string& found) {
  return make_diag(DiagCode::I311, {{"argument", what}, {"wanted", wanted}, {"found", found}});
}

// "Sq@cp,Hkv@tp"
std::string print_home(const Mesh& mesh, const HomeAxes& home) {
  std::string out;
  for (std::size_t i = 0; i < home.size(); ++i) {
    for (const std::string& axis : home[i]) {
      out += (out.empty() ? "" : ",") + axis + "@" + mesh.axes[i].name;
    }
  }
  return out.empty() ? "whole on every rank" : out;
}

HomeAxes wanted_home(const Mesh& mesh, const Place& place) {
  HomeAxes home(mesh.axes.size());
  for (const Placement& at : place.at) {
    home[static_cast<std::size_t>(find_axis(mesh, at.axes.front()))] = {at.digit};
  }
  return home;
}

}  // namespace

Checked<Ok> check_constraints(const Program& program, const Mesh& mesh, const NormalForm& form,
                              const Constraints& constraints) {
  for (const Place& place : constraints.homes) {
    const auto wanted = wanted_home(mesh, place);
    const auto found = home_of(mesh, form, place.buffer);
    if (found == wanted) continue;
    return breaks("home of " + place.buffer, print_home(mesh, wanted), print_home(mesh, found));
  }
  if (!constraints.layout) return Ok{};
  HP_TRY(const Blocks blocks, Blocks::make(program, mesh, form));
  for (const HeldAxis& held : find_held_axes(program, blocks)) {
    const bool is_bound = held.is_masked || constraints.layout == AxisLayout::Contiguous;
    if (!is_bound || held.layout == AxisLayout::Whole || held.layout == constraints.layout) {
      continue;
    }
    return breaks("layout of " + held.axis, std::string(print(*constraints.layout)),
                  std::string(print(held.layout)));
  }
  return Ok{};
}

}  // namespace harpe
