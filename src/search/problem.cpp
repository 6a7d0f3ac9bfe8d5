#include "search/problem.h"

#include <algorithm>

#include "ir/blocks.h"
#include "ir/interpret.h"
#include "ir/mask.h"
#include "leaves/leaf.h"

namespace harpe {
namespace {

using Names = std::vector<std::string>;

bool has(const Names& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

Diag no_space(const Program& program, std::string_view reason) {
  return make_diag(DiagCode::S703, {{"program", program.name}, {"reason", reason}});
}

double flops_of_nest(const Program& program, const Nest& nest) {
  Program alone = program;
  alone.nests = {nest};
  return flops_of(alone);
}

double bytes_of(const Program& program, const Buffer& buffer, DType dtype) {
  auto bytes = static_cast<double>(size_in_bytes(dtype));
  for (const std::int64_t extent : shape_of(program, buffer)) bytes *= static_cast<double>(extent);
  return bytes;
}

// Reads along which axes of the given mesh each axis of a buffer is divided.
struct HomeReader {
  const Mesh& mesh;
  const NormalForm& form;

  [[nodiscard]] std::string axis_of_digit(const std::string& digit) const {
    for (const Split& split : form.splits) {
      if (std::ranges::find(split.digits, digit, &Digit::name) != split.digits.end()) {
        return split.axis;
      }
    }
    return "";
  }

  [[nodiscard]] int whole_axis(const std::string& part) const {
    for (const Refine& refine : form.refines) {
      if (std::ranges::find(refine.parts, part, &MeshAxis::name) != refine.parts.end()) {
        return find_axis(mesh, refine.axis);
      }
    }
    return find_axis(mesh, part);
  }

  // Per mesh axis the name of the buffer's axis, or "".
  [[nodiscard]] Names home(const Place* place) const {
    Names axes(mesh.axes.size());
    if (place == nullptr) return axes;
    for (const Placement& at : place->at) {
      for (const std::string& part : at.axes) {
        const int axis = whole_axis(part);
        if (axis >= 0) axes[static_cast<std::size_t>(axis)] = axis_of_digit(at.digit);
      }
    }
    return axes;
  }
};

// The axis's role, from the statement's operands and results that have it (leaf_contract.h).
AxisRole role_of(const Problem& problem, const Stmt& stmt, const std::string& axis, int index) {
  if (problem.mask && problem.mask->queries == index) return AxisRole::Rows;
  if (problem.mask && problem.mask->keys == index) return AxisRole::Columns;
  const auto axes_of = [&](const std::string& buffer) {
    return axis_names(*find_buffer(*problem.program, buffer));
  };
  const bool in_first = has(axes_of(stmt.operands[0].buffer), axis);
  const bool in_second = stmt.operands.size() > 1 && has(axes_of(stmt.operands[1].buffer), axis);
  const bool in_result = has(axes_of(stmt.targets[0].buffer), axis);
  if (find_leaf_contract(stmt.leaf) != nullptr && find_leaf_contract(stmt.leaf)->has_scores()) {
    // Query axes are in the first operand only, key axes in the second only; head axes are neither.
    const Names dims = axes_of(stmt.operands[0].buffer);
    if (in_first && !in_second) {
      return dims.size() > 1 && dims[1] == axis ? AxisRole::Rows : AxisRole::Batch;
    }
    return in_second && !in_first ? AxisRole::Columns : AxisRole::Batch;
  }
  if (in_first && in_second) return in_result ? AxisRole::Batch : AxisRole::Depth;
  return in_first ? AxisRole::Rows : AxisRole::Columns;
}

class ProblemMaker {
 public:
  ProblemMaker(const Program& program, const Mesh& mesh, const NormalForm& standard,
               const SearchOptions& options)
      : program_(program), options_(options), reader_{mesh, standard} {
    problem_.program = &program;
    problem_.mesh = &mesh;
  }

  Checked<Problem> make() {
    HP_TRY(const Nest* nest, choose_nest());
    const Stmt& stmt = nest->stmts.front();
    problem_.nest = nest->name;
    problem_.leaf = stmt.leaf;
    problem_.flops = flops_of_nest(program_, *nest);
    problem_.dtype = std::string(print(find_buffer(program_, stmt.operands.front().buffer)->dtype));
    problem_.whole_states = options_.numerics != NumericsClass::Rounded;
    problem_.fixes_zigzag = options_.constraints.layout == AxisLayout::Zigzag;
    for (const std::string& axis : nest->over) {
      problem_.axes.push_back({axis, size_of(*find_axis(program_, axis)), AxisRole::Batch});
    }
    HP_REQUIRE_OK(read_mask(stmt));
    for (std::size_t i = 0; i < problem_.axes.size(); ++i) {
      problem_.axes[i].role = role_of(problem_, stmt, problem_.axes[i].name, static_cast<int>(i));
    }
    read_depth(*nest, stmt);
    add_groups(stmt);
    HP_REQUIRE_OK(add_side_nests(*nest));
    return problem_;
  }

 private:
  // Chooses the nest with the most work.
  Checked<const Nest*> choose_nest() const {
    if (std::ranges::any_of(program_.decls,
                            [](const Decl& decl) { return std::holds_alternative<Route>(decl); })) {
      return no_space(program_, "a route decides what its nests work on");
    }
    const Nest* chosen = nullptr;
    double most = -1;
    for (const Nest& nest : program_.nests) {
      const double flops = flops_of_nest(program_, nest);
      if (flops > most) chosen = &nest;
      most = std::max(most, flops);
    }
    if (chosen == nullptr || chosen->stmts.size() != 1) {
      return no_space(program_, "its largest nest has more than one statement");
    }
    if (!chosen->seq.empty()) return no_space(program_, "its largest nest has sequential axes");
    const Stmt& stmt = chosen->stmts.front();
    for (const auto* accesses : {&stmt.operands, &stmt.targets}) {
      for (const Access& access : *accesses) {
        if (!access.renames.empty()) return no_space(program_, "an access renames axes");
      }
    }
    return chosen;
  }

  Checked<Ok> read_mask(const Stmt& stmt) {
    HP_TRY(const Blocks blocks, Blocks::make(program_, reader_.mesh, reader_.form));
    const auto mask = resolve_masks(blocks, stmt);
    if (!mask) return Ok{};
    const auto index = [&](int axis) {
      return static_cast<int>(std::ranges::find(problem_.axes,
                                                blocks.axes()[static_cast<std::size_t>(axis)].name,
                                                &SearchAxis::name) -
                              problem_.axes.begin());
    };
    problem_.mask = {index(mask->query_axis), index(mask->key_axis), mask->visible};
    return Ok{};
  }

  void read_depth(const Nest& nest, const Stmt& stmt) {
    const Names dims = axis_names(*find_buffer(program_, stmt.operands.front().buffer));
    for (const std::string& axis : nest.whole) {
      if (has(dims, axis))
        problem_.depth *= static_cast<double>(size_of(*find_axis(program_, axis)));
    }
  }

  void add_groups(const Stmt& stmt) {
    for (const Access& access : stmt.operands) add_buffer(access.buffer, stmt, false);
    for (const Access& access : stmt.targets) add_buffer(access.buffer, stmt, true);
    for (const Buffer* buffer : buffers_of(program_)) {
      if (has(seen_, buffer->name)) continue;
      double share = 1;
      for (const std::string& axis : home_of(buffer->name)) {
        if (!axis.empty()) share *= 1.0 / static_cast<double>(reader_.mesh.ranks());
      }
      problem_.side_bytes += share * bytes_of(program_, *buffer, buffer->dtype);
    }
  }

  [[nodiscard]] const Place* find_fixed(const std::string& buffer) const {
    const auto& homes = options_.constraints.homes;
    const auto found = std::ranges::find(homes, buffer, &Place::buffer);
    return found == homes.end() ? nullptr : &*found;
  }

  [[nodiscard]] Names home_of(const std::string& buffer) const {
    if (const Place* const place = find_fixed(buffer)) {
      Names axes(reader_.mesh.axes.size());
      for (const Placement& at : place->at) {  // here `digit` names the axis itself
        axes[static_cast<std::size_t>(find_axis(reader_.mesh, at.axes.front()))] = at.digit;
      }
      return axes;
    }
    return reader_.home(find_place(reader_.form, buffer));
  }

  void add_buffer(const std::string& name, const Stmt& stmt, bool written) {
    if (has(seen_, name)) return;
    seen_.push_back(name);
    const Buffer& buffer = *find_buffer(program_, name);
    SearchGroup group;
    group.buffers = {name};
    group.written = written;
    group.fixed = find_fixed(name) != nullptr;
    const Names dims = axis_names(buffer);
    const Names home = home_of(name);
    for (std::size_t i = 0; i < problem_.axes.size(); ++i) {
      if (has(dims, problem_.axes[i].name))
        group.axes.push_back(static_cast<int>(i));
      else
        group.reduced = group.reduced || written;
    }
    for (const std::string& axis : home) {
      const auto at = std::ranges::find(problem_.axes, axis, &SearchAxis::name);
      group.home.push_back(
          at == problem_.axes.end() ? -1 : static_cast<int>(at - problem_.axes.begin()));
    }
    group.bytes = bytes_of(program_, buffer, buffer.dtype);
    group.state_bytes = bytes_of(program_, buffer, state_dtype(buffer.dtype));
    group.is_sum = stmt.monoid == Monoid::Sum;
    join(std::move(group));
  }

  void join(SearchGroup group) {
    for (SearchGroup& other : problem_.groups) {
      if (other.written != group.written || other.home != group.home) continue;
      if (other.axes != group.axes || other.fixed != group.fixed) continue;
      other.buffers.push_back(group.buffers.front());
      other.bytes += group.bytes;
      other.state_bytes += group.state_bytes;
      return;
    }
    problem_.groups.push_back(std::move(group));
  }

  Checked<Ok> add_side_nests(const Nest& main) {
    for (const Nest& nest : program_.nests) {
      if (nest.name == main.name) continue;
      const std::string& target = nest.stmts.front().targets.front().buffer;
      const auto found = std::ranges::find_if(
          problem_.groups, [&](const SearchGroup& group) { return has(group.buffers, target); });
      if (found == problem_.groups.end()) {
        return no_space(program_, "nest `" + nest.name + "` makes nothing that `" + main.name +
                                      "` reads or makes");
      }
      SideNest side{nest.name, static_cast<int>(found - problem_.groups.begin()), {}};
      for (const Access& access : nest.stmts.front().operands) {
        const auto has_it = [&](const SearchGroup& group) {
          return has(group.buffers, access.buffer);
        };
        if (std::ranges::none_of(problem_.groups, has_it)) side.buffers.push_back(access.buffer);
      }
      problem_.side_nests.push_back(std::move(side));
    }
    return Ok{};
  }

  const Program& program_;
  const SearchOptions& options_;
  HomeReader reader_;
  Problem problem_;
  Names seen_;
};

}  // namespace

HomeAxes home_of(const Mesh& mesh, const NormalForm& form, const std::string& buffer) {
  const HomeReader reader{mesh, form};
  HomeAxes axes(mesh.axes.size());
  const Place* place = find_place(form, buffer);
  for (const Placement& at : place == nullptr ? std::vector<Placement>() : place->at) {
    for (const std::string& part : at.axes) {
      axes[static_cast<std::size_t>(reader.whole_axis(part))].insert(
          reader.axis_of_digit(at.digit));
    }
  }
  return axes;
}

std::string homes_of(const Program& program, const Mesh& mesh, const NormalForm& form) {
  std::string out;
  for (const Buffer* buffer : buffers_of(program)) {
    if (buffer->role == Role::Temp) continue;
    out += buffer->name + "[";
    for (const auto& along : home_of(mesh, form, buffer->name)) {
      for (const std::string& axis : along) out += axis + " ";
      out += "|";
    }
    out += "]";
  }
  return out;
}

Checked<Problem> make_problem(const Program& program, const Mesh& mesh, const NormalForm& standard,
                              const SearchOptions& options) {
  return ProblemMaker(program, mesh, standard, options).make();
}

}  // namespace harpe
