#include "search/space.h"

#include <algorithm>

#include "search/regions.h"

namespace harpe {
namespace {

// Ordered factorisations of `size` into at most `most` factors above 1.
void factorise(std::int64_t size, int most, std::vector<std::int64_t>& prefix,
               std::vector<std::vector<std::int64_t>>& out) {
  if (size == 1 || most == 1) {
    out.push_back(prefix);
    if (size > 1) out.back().push_back(size);
    return;
  }
  for (std::int64_t factor = 2; factor <= size; ++factor) {
    if (size % factor != 0) continue;
    prefix.push_back(factor);
    factorise(size / factor, factor == size ? 1 : most - 1, prefix, out);
    prefix.pop_back();
  }
}

// Every way to cut the mesh's axes into parts.
std::vector<std::vector<CandidatePart>> cut_mesh(const Mesh& mesh, int cuts) {
  const int most = std::min(kMostParts, divided_axes(mesh) + cuts);
  std::vector<std::vector<CandidatePart>> shapes{{}};
  for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
    std::vector<std::vector<std::int64_t>> factors;
    std::vector<std::int64_t> prefix;
    factorise(mesh.axes[axis].size, cuts + 1, prefix, factors);
    std::vector<std::vector<CandidatePart>> longer;
    for (const auto& shape : shapes) {
      for (const auto& sizes : factors) {
        if (static_cast<int>(shape.size() + sizes.size()) > most) continue;
        longer.push_back(shape);
        for (const std::int64_t size : sizes) {
          CandidatePart part;
          part.mesh_axis = static_cast<std::uint8_t>(axis);
          part.size = static_cast<std::uint16_t>(size);
          longer.back().push_back(part);
        }
      }
    }
    shapes = std::move(longer);
  }
  return shapes;
}

class SkeletonWalk {
 public:
  SkeletonWalk(const Problem& problem, const SpaceOptions& options)
      : problem_(problem), options_(options) {}

  std::vector<Candidate> run() {
    for (const auto& parts : cut_mesh(*problem_.mesh, options_.cuts)) {
      if (parts.empty()) continue;
      Candidate candidate;
      candidate.parts = static_cast<std::uint8_t>(parts.size());
      std::ranges::copy(parts, candidate.part.begin());
      deal(candidate, 0);
    }
    return std::move(found_);
  }

 private:
  [[nodiscard]] int axes() const { return static_cast<int>(problem_.axes.size()); }
  [[nodiscard]] int groups() const { return static_cast<int>(problem_.groups.size()); }

  // True if the axis is long enough to give every rank of its parts some work.
  [[nodiscard]] bool has_room(const Candidate& candidate, int upto, int axis) const {
    std::int64_t digits = 1;
    for (int p = 0; p <= upto; ++p) {
      if (candidate.part[static_cast<std::size_t>(p)].par == axis) {
        digits *= candidate.part[static_cast<std::size_t>(p)].size;
      }
    }
    return digits <= problem_.axes[static_cast<std::size_t>(axis)].size;
  }

  void deal(Candidate& candidate, int part) {
    if (part == candidate.parts) {
      finish(candidate);
      return;
    }
    CandidatePart& at = candidate.part[static_cast<std::size_t>(part)];
    for (int axis = 0; axis < axes(); ++axis) {
      at.par = static_cast<std::int8_t>(axis);
      if (!has_room(candidate, part, axis)) continue;
      for_each_home(candidate, part, [&] { visit_digits(candidate, part, 0); });
    }
    at.par = -1;
    at.moved_home = 0;
  }

  // Under a free contract the home of a group may be where it is used.
  template <class Next>
  void for_each_home(Candidate& candidate, int part, const Next& next) const {
    CandidatePart& at = candidate.part[static_cast<std::size_t>(part)];
    std::uint8_t movable = 0;
    for (int g = 0; g < groups() && options_.contract == Contract::Free; ++g) {
      const SearchGroup& group = problem_.groups[static_cast<std::size_t>(g)];
      const bool has_axis = std::ranges::find(group.axes, at.par) != group.axes.end();
      if (has_axis && !group.fixed && group.home[at.mesh_axis] != at.par)
        movable |= static_cast<std::uint8_t>(1U << g);
    }
    // All subsets of the movable groups, the empty one first.
    std::uint8_t chosen = 0;
    do {
      at.moved_home = chosen;
      next();
      chosen = static_cast<std::uint8_t>((chosen - movable) & movable);
    } while (chosen != 0);
    at.moved_home = 0;
  }

  [[nodiscard]] bool is_open(const Candidate& candidate, int part, int axis) const {
    return candidate.part[static_cast<std::size_t>(part)].par != axis &&
           is_home(candidate, part, axis);
  }

  void visit_digits(Candidate& candidate, int part, int axis) {
    if (axis == axes()) {
      deal(candidate, part + 1);
      return;
    }
    Follow& follow =
        candidate.part[static_cast<std::size_t>(part)].follow[static_cast<std::size_t>(axis)];
    follow = Follow::Whole;
    visit_digits(candidate, part, axis + 1);
    if (!is_open(candidate, part, axis)) return;
    for (const Follow choice : {Follow::Each, Follow::Rotate}) {
      candidate.part[static_cast<std::size_t>(part)].follow[static_cast<std::size_t>(axis)] =
          choice;
      visit_digits(candidate, part, axis + 1);
    }
    candidate.part[static_cast<std::size_t>(part)].follow[static_cast<std::size_t>(axis)] =
        Follow::Whole;
  }

  // `Each` without a loop around it equals `Whole`. Loops over several mesh axes have two orders.
  void finish(Candidate candidate) {
    const auto loops = loops_of(problem_, candidate);
    if (!each_has_a_loop(candidate, loops)) return;
    add_layouts(candidate);
    const bool on_one = std::ranges::all_of(loops, [&](const CandidateLoop& loop) {
      return axis_of(candidate, loop) == axis_of(candidate, loops.front());
    });
    if (on_one) return;
    candidate.reversed = true;
    if (each_has_a_loop(candidate, loops_of(problem_, candidate))) add_layouts(candidate);
  }

  [[nodiscard]] static int axis_of(const Candidate& candidate, const CandidateLoop& loop) {
    return candidate.part[static_cast<std::size_t>(loop.part)].mesh_axis;
  }

  [[nodiscard]] bool each_has_a_loop(const Candidate& candidate,
                                     const std::vector<CandidateLoop>& loops) const {
    for (int p = 0; p < candidate.parts; ++p) {
      for (int axis = 0; axis < axes(); ++axis) {
        const CandidatePart& part = candidate.part[static_cast<std::size_t>(p)];
        if (part.follow[static_cast<std::size_t>(axis)] != Follow::Each) continue;
        const bool inside = std::ranges::any_of(loops, [&](const CandidateLoop& loop) {
          return loop.part != p && is_shared(candidate, p, axis, loop.axis);
        });
        if (!inside) return false;
      }
    }
    return true;
  }

  // True if a group whose home divides `axis` at the part is indexed by the loop's axis.
  [[nodiscard]] bool is_shared(const Candidate& candidate, int part, int axis, int loop) const {
    for (int g = 0; g < groups(); ++g) {
      const SearchGroup& group = problem_.groups[static_cast<std::size_t>(g)];
      if (home_at(problem_, candidate, part, g) != axis) continue;
      if (std::ranges::find(group.axes, loop) != group.axes.end()) return true;
    }
    return false;
  }

  void add_layouts(Candidate candidate) {
    candidate.zigzag = false;
    if (keeps_layout(candidate)) found_.push_back(candidate);
    candidate.zigzag = true;
    if (may_zigzag(candidate) && keeps_layout(candidate)) found_.push_back(candidate);
  }

  [[nodiscard]] bool may_zigzag(const Candidate& candidate) const {
    if (!problem_.mask || !is_home(candidate, problem_.mask->queries)) return false;
    std::int64_t ranks = 1;
    for (int p = 0; p < candidate.parts; ++p) {
      ranks *= candidate.part[static_cast<std::size_t>(p)].size;
    }
    const auto size = [&](int axis) { return problem_.axes[static_cast<std::size_t>(axis)].size; };
    const std::int64_t room = std::min(size(problem_.mask->queries), size(problem_.mask->keys));
    return room >= 2 * ranks;
  }

  // True if the home of some group divides the axis.
  [[nodiscard]] bool is_home(const Candidate& candidate, int axis) const {
    for (int p = 0; p < candidate.parts; ++p) {
      if (is_home(candidate, p, axis)) return true;
    }
    return false;
  }
  [[nodiscard]] bool is_home(const Candidate& candidate, int part, int axis) const {
    for (int g = 0; g < groups(); ++g) {
      if (home_at(problem_, candidate, part, g) == axis) return true;
    }
    return false;
  }

  [[nodiscard]] bool keeps_layout(const Candidate& candidate) const {
    if (!options_.layout) return true;
    const bool wants_zigzag = options_.layout == AxisLayout::Zigzag;
    for (int axis = 0; axis < axes(); ++axis) {
      const bool is_masked =
          problem_.mask && (axis == problem_.mask->queries || axis == problem_.mask->keys);
      if ((wants_zigzag && !is_masked) || !is_home(candidate, axis)) continue;
      const bool is_zigzag = candidate.zigzag && is_masked;
      if (is_zigzag != wants_zigzag || !selects_whole_parts(candidate, axis)) return false;
    }
    return true;
  }

  // An axis is split by the homes of all groups, major first. A group's home is one contiguous
  // range if it has the first of these digits, and a zigzag range if it has all of them.
  [[nodiscard]] bool selects_whole_parts(const Candidate& candidate, int axis) const {
    for (int g = 0; g < groups(); ++g) {
      bool has_some = false;
      bool lacks_some = false;
      for (int p = 0; p < candidate.parts; ++p) {
        if (!is_home(candidate, p, axis)) continue;
        const bool has_this = home_at(problem_, candidate, p, g) == axis;
        if (has_this && lacks_some) return false;
        has_some = has_some || has_this;
        lacks_some = lacks_some || !has_this;
      }
      if (candidate.zigzag && has_some && lacks_some) return false;
    }
    return true;
  }

  const Problem& problem_;
  const SpaceOptions& options_;
  std::vector<Candidate> found_;
};

// The ways that a group may move at a part.
std::vector<Way> ways_of(const Problem& problem, const Candidate& skeleton, int part, int g) {
  if (!needs_move(problem, skeleton, part, g)) return {Way::None};
  const SearchGroup& group = problem.groups[static_cast<std::size_t>(g)];
  const CandidatePart& at = skeleton.part[static_cast<std::size_t>(part)];
  const int home = home_at(problem, skeleton, part, g);
  const bool rotates = home >= 0 && at.follow[static_cast<std::size_t>(home)] == Follow::Rotate;
  // A relay passes on the block that its neighbour held. That would be a wrong block where ranks
  // use different parts of it or add to the same one (commir.md 4.4).
  if (!rotates || is_indexed(group, at.par)) return {Way::Bulk, Way::Direct};
  return {Way::Bulk, Way::Direct, Way::Relay};
}

// True if every loop moves something; otherwise it would only cut the leaf.
bool loops_have_moves(const Problem& problem, const Candidate& candidate) {
  const auto loops = loops_of(problem, candidate);
  const auto moves = moves_of(problem, candidate, loops);
  return std::ranges::all_of(loops, [&](const CandidateLoop& loop) {
    return std::ranges::any_of(moves, [&](const CandidateMove& move) {
      return move.rotates && move.part == loop.part &&
             home_at(problem, candidate, move.part, move.group) == loop.axis;
    });
  });
}

void choose_ways(const Problem& problem, Candidate& candidate, int slot,
                 const std::function<void(const Candidate&)>& visit) {
  const int groups = static_cast<int>(problem.groups.size());
  if (slot == candidate.parts * groups) {
    if (loops_have_moves(problem, candidate)) visit(candidate);
    return;
  }
  const int part = slot / groups;
  const int group = slot % groups;
  for (const Way way : ways_of(problem, candidate, part, group)) {
    candidate.part[static_cast<std::size_t>(part)].way[static_cast<std::size_t>(group)] = way;
    choose_ways(problem, candidate, slot + 1, visit);
  }
  candidate.part[static_cast<std::size_t>(part)].way[static_cast<std::size_t>(group)] = Way::None;
}

}  // namespace

int divided_axes(const Mesh& mesh) {
  return static_cast<int>(
      std::ranges::count_if(mesh.axes, [](const MeshAxis& axis) { return axis.size > 1; }));
}

std::vector<Candidate> enumerate_skeletons(const Problem& problem, const SpaceOptions& options) {
  return SkeletonWalk(problem, options).run();
}

// Ways are independent, except for the condition on loops: of the groups whose home a loop visits,
// at least one must move other than in bulk.
std::int64_t count_variants(const Problem& problem, const Candidate& skeleton) {
  std::int64_t count = 1;
  for (int part = 0; part < skeleton.parts; ++part) {
    std::array<std::int64_t, kMostAxes> turning{};
    for (int g = 0; g < static_cast<int>(problem.groups.size()); ++g) {
      const auto ways = static_cast<std::int64_t>(ways_of(problem, skeleton, part, g).size());
      const int home = home_at(problem, skeleton, part, g);
      if (home >= 0 && needs_move(problem, skeleton, part, g) &&
          skeleton.part[static_cast<std::size_t>(part)].follow[static_cast<std::size_t>(home)] ==
              Follow::Rotate) {
        std::int64_t& all = turning[static_cast<std::size_t>(home)];
        all = std::max<std::int64_t>(all, 1) * ways;
      } else {
        count *= ways;
      }
    }
    for (const std::int64_t all : turning) count *= all > 0 ? all - 1 : 1;
  }
  return count;
}

std::array<Candidate, 2> usual_variants(const Problem& problem, const Candidate& skeleton) {
  std::array<Candidate, 2> usual = {skeleton, skeleton};
  for (int part = 0; part < skeleton.parts; ++part) {
    const auto at = static_cast<std::size_t>(part);
    for (int g = 0; g < static_cast<int>(problem.groups.size()); ++g) {
      const auto ways = ways_of(problem, skeleton, part, g);
      const int home = home_at(problem, skeleton, part, g);
      const bool turns =
          home >= 0 && skeleton.part[at].follow[static_cast<std::size_t>(home)] == Follow::Rotate;
      usual[0].part[at].way[static_cast<std::size_t>(g)] = turns ? ways.back() : ways.front();
      const bool direct = !turns && ways.size() > 1;
      usual[1].part[at].way[static_cast<std::size_t>(g)] =
          direct ? Way::Direct : usual[0].part[at].way[static_cast<std::size_t>(g)];
    }
  }
  return usual;
}

std::vector<Candidate> neighbours_of(const Problem& problem, const Candidate& candidate) {
  std::vector<Candidate> found;
  for (int part = 0; part < candidate.parts; ++part) {
    for (int g = 0; g < static_cast<int>(problem.groups.size()); ++g) {
      const auto at = static_cast<std::size_t>(part);
      for (const Way way : ways_of(problem, candidate, part, g)) {
        if (candidate.part[at].way[static_cast<std::size_t>(g)] == way) continue;
        Candidate other = candidate;
        other.part[at].way[static_cast<std::size_t>(g)] = way;
        if (loops_have_moves(problem, other)) found.push_back(other);
      }
    }
  }
  return found;
}

void for_each_variant(const Problem& problem, const Candidate& skeleton,
                      const std::function<void(const Candidate&)>& visit) {
  Candidate candidate = skeleton;
  choose_ways(problem, candidate, 0, visit);
}

std::vector<Candidate> refinements_of(const Problem& problem, const Machine& machine,
                                      const Candidate& candidate) {
  std::vector<Candidate> found;
  const auto moves = moves_of(problem, candidate, loops_of(problem, candidate));
  for (const CandidateMove& move : moves) {
    const auto part = static_cast<std::size_t>(move.part);
    const auto group = static_cast<std::size_t>(move.group);
    if (candidate.part[part].way[group] == Way::Bulk) continue;
    if (move.rotates) {
      const int slots = slots_of(problem, candidate, move);
      for (const int depth : {slots - 1, slots + 1}) {
        if (depth < 2 || depth > 4) continue;
        found.push_back(candidate);
        found.back().part[part].depth[group] = static_cast<std::uint8_t>(depth);
      }
    }
    const int level = level_of(machine, candidate, move.part);
    for (const Via via : {Via::Ce, Via::Tma}) {
      if (level > 0 || via_of(candidate, move, level) == via) continue;
      found.push_back(candidate);
      found.back().part[part].via[group] = static_cast<std::uint8_t>(1 + static_cast<int>(via));
    }
  }
  return found;
}

}  // namespace harpe
