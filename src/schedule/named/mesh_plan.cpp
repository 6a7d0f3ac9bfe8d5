#include "schedule/named/mesh_plan.h"

#include <algorithm>

#include "support/check.h"

namespace harpe {

MeshPlan::MeshPlan(const Mesh& mesh) : mesh_(mesh) {
  for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
    parts_.push_back({static_cast<int>(axis), mesh.axes[axis].size});
    of_axis_.push_back({static_cast<int>(axis)});
  }
}

MeshPlan::Level MeshPlan::all() const {
  Level level;
  for (const std::vector<int>& parts : of_axis_) {
    for (const int part : parts) {
      level.parts.push_back(part);
      level.ranks *= parts_[static_cast<std::size_t>(part)].size;
    }
  }
  return level;
}

std::pair<int, int> MeshPlan::halve(int part, std::int64_t major) {
  const Part whole = parts_[static_cast<std::size_t>(part)];
  const int first = static_cast<int>(parts_.size());
  parts_.push_back({whole.axis, major});
  parts_.push_back({whole.axis, whole.size / major});
  std::vector<int>& siblings = of_axis_[static_cast<std::size_t>(whole.axis)];
  const auto at = siblings.erase(std::ranges::find(siblings, part));
  siblings.insert(at, {first, first + 1});
  return {first, first + 1};
}

std::pair<MeshPlan::Level, MeshPlan::Level> MeshPlan::outer_and_inner(std::int64_t outer) {
  Level level = all();
  if (level.parts.size() == 1) {
    HP_CHECK(level.ranks % outer == 0, "factor does not divide the mesh axis");
    const auto [first, second] = halve(level.parts[0], outer);
    return {Level{{first}, outer}, Level{{second}, level.ranks / outer}};
  }
  const int first = level.parts.front();
  const std::int64_t size = parts_[static_cast<std::size_t>(first)].size;
  level.parts.erase(level.parts.begin());
  return {Level{{first}, size}, Level{level.parts, level.ranks / size}};
}

std::optional<std::pair<MeshPlan::Level, MeshPlan::Level>> MeshPlan::cut(const Level& level,
                                                                         std::int64_t major) {
  if (major == level.ranks) return std::pair(level, Level{});
  Level first;
  Level second;
  for (const int part : level.parts) {
    const std::int64_t size = parts_[static_cast<std::size_t>(part)].size;
    const std::int64_t missing = major / first.ranks;
    if (missing == 1) {
      second.parts.push_back(part);
      second.ranks *= size;
    } else if (missing % size == 0) {
      first.parts.push_back(part);
      first.ranks *= size;
    } else if (size % missing == 0) {
      const auto [head, tail] = halve(part, missing);
      first.parts.push_back(head);
      first.ranks *= missing;
      second.parts.push_back(tail);
      second.ranks *= size / missing;
    } else {
      return std::nullopt;
    }
  }
  if (first.ranks != major) return std::nullopt;
  return std::pair(first, second);
}

std::vector<MeshPlan::Refinement> MeshPlan::refinements() const {
  std::vector<Refinement> lines;
  for (std::size_t axis = 0; axis < of_axis_.size(); ++axis) {
    if (of_axis_[axis].size() < 2) continue;
    Refinement line{mesh_.axes[axis].name, {}, of_axis_[axis]};
    for (const int part : line.parts) {
      line.factors.push_back(parts_[static_cast<std::size_t>(part)].size);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string MeshPlan::axis_of(int part) const {
  const auto axis = static_cast<std::size_t>(parts_[static_cast<std::size_t>(part)].axis);
  return of_axis_[axis].size() == 1 ? mesh_.axes[axis].name : "";
}

std::int64_t smaller_factor(std::int64_t n) {
  std::int64_t best = 1;
  for (std::int64_t factor = 1; factor * factor <= n; ++factor) {
    if (n % factor == 0) best = factor;
  }
  return best;
}

}  // namespace harpe
