#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "ir/text.h"
#include "schedule/replay.h"
#include "search/candidate.h"
#include "support/check.h"

namespace harpe {
namespace {

// With more blocks than this, a table of positions is too long for a readable line. A zigzag of
// only the largest home digit is nearly as balanced, but gives ranks other positions.
constexpr std::int64_t kLongestTable = 128;

class FormWriter {
 public:
  FormWriter(const Problem& problem, const Machine& machine, const Candidate& candidate)
      : problem_(problem),
        machine_(machine),
        candidate_(candidate),
        loops_(loops_of(problem, candidate)),
        moves_(moves_of(problem, candidate, loops_)) {
    for (const MeshAxis& axis : problem.mesh->axes) taken_.insert(axis.name);
  }

  NormalForm write() {
    form_.name = kSearched;
    form_.program = problem_.program->name;
    form_.mesh = problem_.mesh->name;
    name_parts();
    for (int axis = 0; axis < count(problem_.axes); ++axis) split_axis(axis);
    place_groups();
    NestForm main{.nest = problem_.nest, .items = {}, .leaf = {}};
    write_main(main);
    std::vector<NestForm> sides;
    for (const SideNest& side : problem_.side_nests) sides.push_back(write_side(side));
    for (const Nest& nest : problem_.program->nests) {
      if (nest.name == main.nest) {
        form_.nests.push_back(std::move(main));
        continue;
      }
      form_.nests.push_back(*std::ranges::find(sides, nest.name, &NestForm::nest));
    }
    return canonicalise(*problem_.program, std::move(form_));
  }

 private:
  template <class Range>
  [[nodiscard]] static int count(const Range& range) {
    return static_cast<int>(range.size());
  }

  [[nodiscard]] const CandidatePart& part(int index) const {
    return candidate_.part[static_cast<std::size_t>(index)];
  }

  std::string choose_name(std::string name) {
    while (!taken_.insert(name).second) name += "_";
    return name;
  }

  // A mesh axis that is cut into several parts is refined.
  void name_parts() {
    for (int axis = 0; axis < count(problem_.mesh->axes); ++axis) {
      const std::string& name = problem_.mesh->axes[static_cast<std::size_t>(axis)].name;
      std::vector<int> own;
      for (int p = 0; p < candidate_.parts; ++p) {
        if (part(p).mesh_axis == axis) own.push_back(p);
      }
      if (own.size() == 1) {
        parts_[own.front()] = name;
        continue;
      }
      Refine refine{.axis = name, .parts = {}};
      for (const int p : own) {
        parts_[p] = choose_name(name + "_" + std::to_string(refine.parts.size()));
        refine.parts.push_back({parts_[p], part(p).size});
      }
      if (!own.empty()) form_.refines.push_back(std::move(refine));
    }
  }

  [[nodiscard]] bool is_home(int p, int axis) const {
    for (int group = 0; group < count(problem_.groups); ++group) {
      if (home_at(problem_, candidate_, p, group) == axis) return true;
    }
    return false;
  }

  // Home digits come first, so that every rank's block is one contiguous range of positions; then
  // the halves of a zigzag; then digits that are only computed in parallel.
  void split_axis(int axis) {
    std::string base;
    for (const char c : problem_.axes[static_cast<std::size_t>(axis)].name) {
      base += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    Split split{.axis = problem_.axes[static_cast<std::size_t>(axis)].name, .digits = {}};
    const auto add = [&](std::optional<std::int64_t> extent) {
      split.digits.push_back({choose_name(base + std::to_string(split.digits.size())), extent});
      return split.digits.back().name;
    };
    std::int64_t ranks = 1;
    for (int p = 0; p < candidate_.parts; ++p) {
      if (!is_home(p, axis)) continue;
      digits_[{p, axis}] = add(part(p).size);
      ranks *= part(p).size;
    }
    const bool masked =
        problem_.mask && (problem_.mask->queries == axis || problem_.mask->keys == axis);
    const bool zigzag = candidate_.zigzag && masked && ranks > 1;
    const std::size_t homes = split.digits.size();
    const std::string half = zigzag ? add(2) : "";
    std::int64_t extra = 1;
    for (int p = 0; p < candidate_.parts; ++p) {
      if (part(p).par != axis || is_home(p, axis)) continue;
      digits_[{p, axis}] = add(part(p).size);
      extra *= part(p).size;
    }
    if (split.digits.empty()) return;
    add(std::nullopt);
    if (zigzag) balance(split, homes, half, ranks, extra);
    form_.splits.push_back(std::move(split));
  }

  void balance(const Split& split, std::size_t homes, const std::string& half, std::int64_t ranks,
               std::int64_t extra) {
    Layout layout{.axis = split.axis, .map = {.function = "zigzag", .args = {}}};
    const bool is_too_long = 2 * ranks * extra > kLongestTable && !problem_.fixes_zigzag;
    if (homes == 1 || is_too_long) {
      const auto largest = std::ranges::max_element(
          split.digits.begin(), split.digits.begin() + static_cast<std::ptrdiff_t>(homes), {},
          [](const Digit& digit) { return *digit.extent; });
      layout.map.args = {Name{largest->name}, Name{half}};
    } else {
      layout.map.function = "table";
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        for (const std::int64_t position : {rank, 2 * ranks - 1 - rank}) {
          for (std::int64_t i = 0; i < extra; ++i)
            layout.map.args.emplace_back(position * extra + i);
        }
      }
    }
    form_.layouts.push_back(std::move(layout));
  }

  void place_groups() {
    for (int group = 0; group < count(problem_.groups); ++group) {
      for (const std::string& buffer : problem_.groups[static_cast<std::size_t>(group)].buffers) {
        place(buffer, group);
      }
    }
    for (const SideNest& side : problem_.side_nests) {
      for (const std::string& buffer : side.buffers) place(buffer, side.group);
    }
  }

  // Writes the home of the group, for the axes that the buffer has.
  void place(const std::string& buffer, int group) {
    const std::vector<std::string> dims = axis_names(*find_buffer(*problem_.program, buffer));
    Place place{.buffer = buffer, .at = {}, .partial = {}};
    for (int p = 0; p < candidate_.parts; ++p) {
      const int home = home_at(problem_, candidate_, p, group);
      if (home < 0) continue;
      const std::string& axis = problem_.axes[static_cast<std::size_t>(home)].name;
      if (std::ranges::find(dims, axis) == dims.end()) continue;
      place.at.push_back({digits_.at({p, home}), {parts_.at(p)}});
    }
    form_.places.push_back(std::move(place));
  }

  [[nodiscard]] NestForm write_side(const SideNest& side) const {
    NestForm nest{.nest = side.name, .items = {}, .leaf = {}};
    for (int p = 0; p < candidate_.parts; ++p) {
      const int home = home_at(problem_, candidate_, p, side.group);
      if (home >= 0) nest.items.emplace_back(Par{digits_.at({p, home}), {parts_.at(p)}});
    }
    return nest;
  }

  void write_main(NestForm& nest) const {
    for (int p = 0; p < candidate_.parts; ++p) {
      if (part(p).par < 0) continue;
      nest.items.emplace_back(Par{digits_.at({p, part(p).par}), {parts_.at(p)}});
    }
    for (int depth = 0; depth <= count(loops_); ++depth) {
      if (depth > 0) nest.items.emplace_back(loop(loops_[static_cast<std::size_t>(depth - 1)]));
      for (const CandidateMove& move : moves_) {
        if (move.depth == depth) write_move(nest, move);
      }
    }
  }

  // If only results rotate in a loop, it starts behind the owner's block, so that it ends there.
  [[nodiscard]] For loop(const CandidateLoop& at) const {
    bool brought = false;
    bool left = false;
    for (const CandidateMove& move : moves_) {
      const bool here = move.rotates && move.part == at.part &&
                        home_at(problem_, candidate_, move.part, move.group) == at.axis;
      const bool written = problem_.groups[static_cast<std::size_t>(move.group)].written;
      (written ? left : brought) = (written ? left : brought) || here;
    }
    const std::int64_t offset = left && !brought && part(at.part).size > 1 ? 1 : 0;
    return {.digit = digits_.at({at.part, at.axis}),
            .skew = {parts_.at(at.part)},
            .offset = offset,
            .reverse = false};
  }

  void write_move(NestForm& nest, const CandidateMove& at) const {
    const SearchGroup& group = problem_.groups[static_cast<std::size_t>(at.group)];
    const Way way = part(at.part).way[static_cast<std::size_t>(at.group)];
    const int level = level_of(machine_, candidate_, at.part);
    for (const std::string& buffer : group.buffers) {
      Move move;
      move.kind = group.written ? MoveKind::Drain : MoveKind::Stage;
      move.buffer = buffer;
      move.over = {parts_.at(at.part)};
      move.via = via_of(candidate_, at, level);
      move.how = way == Way::Bulk ? How::Bulk : way == Way::Relay ? How::Relay : How::Direct;
      if (move.how != How::Bulk) {
        const bool posted = *move.via == Via::Proxy;
        move.by = Initiator::Src;  // engines write to other GPUs, and read none (decision 0027)
        move.signal = *move.via == Via::Ce ? Signal::Event : Signal::Flag;
        if (posted) move.fence = Fence::PerDestination;
        if (const int slots = slots_of(problem_, candidate_, at); slots > 1) move.depth = slots;
      }
      const DType dtype = find_buffer(*problem_.program, buffer)->dtype;
      if (problem_.whole_states && group.written && group.is_sum && state_dtype(dtype) != dtype) {
        move.wire = state_dtype(dtype);
      }
      nest.items.emplace_back(std::move(move));
    }
  }

  const Problem& problem_;
  const Machine& machine_;
  const Candidate& candidate_;
  std::vector<CandidateLoop> loops_;
  std::vector<CandidateMove> moves_;
  NormalForm form_;
  std::set<std::string> taken_;
  std::map<int, std::string> parts_;
  std::map<std::pair<int, int>, std::string> digits_;  // of (part, axis)
};

}  // namespace

NormalForm form_of(const Problem& problem, const Machine& machine, const Candidate& candidate) {
  return FormWriter(problem, machine, candidate).write();
}

std::string describe(const Problem& problem, const Candidate& candidate) {
  const auto loops = loops_of(problem, candidate);
  const auto moves = moves_of(problem, candidate, loops);
  std::string out;
  for (int p = 0; p < candidate.parts; ++p) {
    const CandidatePart& part = candidate.part[static_cast<std::size_t>(p)];
    if (p > 0) out += " | ";
    const std::string axis =
        part.par < 0 ? "-" : problem.axes[static_cast<std::size_t>(part.par)].name;
    out += axis + ":" + std::to_string(part.size);
    for (const CandidateMove& move : moves) {
      if (move.part != p) continue;
      const Way way = part.way[static_cast<std::size_t>(move.group)];
      out += move.rotates ? (way == Way::Relay ? " ring" : " turns")
                          : (way == Way::Bulk ? " bulk" : " direct");
      for (const auto& buffer : problem.groups[static_cast<std::size_t>(move.group)].buffers) {
        out += " " + buffer;
      }
      if (move.depth > 0 && !move.rotates) out += " (each)";
      const auto group = static_cast<std::size_t>(move.group);
      if (part.depth[group] > 0) out += " depth " + std::to_string(part.depth[group]);
      if (part.via[group] > 0) {
        out += " via " + std::string(print(static_cast<Via>(part.via[group] - 1)));
      }
      out += ",";
    }
    if (out.ends_with(',')) out.pop_back();
  }
  return out + (candidate.zigzag ? " | zigzag" : "") + (candidate.reversed ? " | inside out" : "");
}

}  // namespace harpe
