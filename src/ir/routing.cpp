#include "ir/routing.h"

#include "support/check.h"

namespace harpe {

Checked<Routing> resolve_route(const Program& program, const Route& route,
                               const HostTensor& index) {
  const auto size = [&](const std::string& axis) { return size_of(*find_axis(program, axis)); };
  const std::int64_t experts = size(route.slots[0]);
  const std::int64_t capacity = size(route.slots[1]);
  Routing routing;
  routing.choices = size(route.choices[1]);
  routing.takers.resize(static_cast<std::size_t>(experts));
  const std::int64_t count = element_count(index);
  HP_CHECK(count <= size(route.choices[0]) * routing.choices, "shape of `" + route.by + "`");
  for (std::int64_t i = 0; i < count; ++i) {
    const auto expert = static_cast<std::int64_t>(load(index, i));
    routing.expert.push_back(expert < 0 ? Routing::kNone : expert);
    routing.slot.push_back(Routing::kNone);
    if (expert < 0) continue;
    if (expert >= experts) {
      return make_diag(DiagCode::P206, {{"buffer", route.by},
                                        {"token", i / routing.choices},
                                        {"choice", i % routing.choices},
                                        {"value", expert},
                                        {"experts", experts}});
    }
    std::vector<std::int64_t>& takers = routing.takers[static_cast<std::size_t>(expert)];
    if (std::ssize(takers) == capacity) {
      return make_diag(
          DiagCode::P207,
          {{"route", route.name}, {"expert", expert}, {"slots", capacity}, {"buffer", route.by}});
    }
    routing.slot.back() = std::ssize(takers);
    takers.push_back(i);
  }
  return routing;
}

bool is_expert_route(const Program& program, const Route& route) {
  return route.slots.size() == 2 && route.choices.size() == 2 &&
         find_axis(program, route.slots[1])->of == route.slots[0];
}

const Axis* find_ragged_axis(const Program& program, const Buffer& buffer) {
  for (const std::string& name : axis_names(buffer)) {
    const Axis* const axis = find_axis(program, name);
    if (axis != nullptr && !axis->of.empty()) return axis;
  }
  return nullptr;
}

}  // namespace harpe
