#include <algorithm>
#include <iterator>

#include "exec/actions/prepare.h"
#include "support/check.h"

namespace harpe::actions {
namespace {

// The buffers of one state, whose axes are matched by key: (o, l) of a logsumexp share all of l's.
class StateSpace {
 public:
  explicit StateSpace(const Setting& setting) : setting_(setting) {}

  Participant add(const Ref& ref) {
    const Alloc& alloc = setting_.plan.allocs[ref.alloc.index()];
    const int buffer = setting_.blocks.find_buffer(alloc.buffer);
    Participant participant{
        .buffer = alloc.buffer, .axes = {}, .patches = patches_of(setting_, ref)};
    for (const AxisKey key : keys_of(setting_.blocks.buffers()[static_cast<std::size_t>(buffer)])) {
      const auto found = std::ranges::find(keys_, key);
      participant.axes.push_back(static_cast<std::size_t>(found - keys_.begin()));
      if (found == keys_.end()) keys_.push_back(key);
    }
    return participant;
  }

  [[nodiscard]] const std::vector<AxisKey>& keys() const { return keys_; }

 private:
  const Setting& setting_;
  std::vector<AxisKey> keys_;
};

// Splits a cell along its row axes until its state has at most so many elements.
std::vector<std::vector<Interval>> split_rows(const std::vector<Interval>& box,
                                              const std::vector<std::size_t>& row_axes,
                                              std::int64_t most) {
  std::vector<std::vector<Interval>> parts = {box};
  for (const std::size_t axis : row_axes) {
    std::vector<std::vector<Interval>> finer;
    for (const std::vector<Interval>& part : parts) {
      std::int64_t elements = 1;
      for (const Interval& span : part) elements *= span.size();
      const std::int64_t length = part[axis].size();
      const std::int64_t step = std::clamp(most * length / std::max<std::int64_t>(elements, 1),
                                           std::int64_t{1}, std::max<std::int64_t>(length, 1));
      for (std::int64_t begin = part[axis].begin; begin < part[axis].end; begin += step) {
        finer.push_back(part);
        finer.back()[axis] = {.begin = begin, .end = std::min(begin + step, part[axis].end)};
      }
    }
    parts = std::move(finer);
  }
  return parts;
}

// Builds the actions of one Fold, Finalise or ReduceScatter.
class FoldBuilder {
 public:
  FoldBuilder(const Setting& setting, const Task& task)
      : setting_(setting),
        task_(task),
        stmt_(statement_of(setting.plan, task)),
        targets_(targets_per_state(stmt_)) {}

  TaskWork build() {
    HP_CHECK(task_.writes.size() % targets_ == 0 && task_.reads.size() % targets_ == 0,
             "one reference per target of a state");
    for (std::size_t group = 0; group < task_.writes.size(); group += targets_) build_group(group);
    return std::move(work_);
  }

 private:
  // Participants: the targets of the group, then every source's.
  void build_group(std::size_t group) {
    StateSpace space(setting_);
    std::vector<Participant> parts;
    parts.reserve(targets_ + task_.reads.size());
    for (std::size_t t = 0; t < targets_; ++t) parts.push_back(space.add(task_.writes[group + t]));
    for (const Ref& ref : task_.reads) parts.push_back(space.add(ref));
    row_axes_ = parts[targets_ - 1].axes;
    const auto ragged = ragged_axis_of_space(setting_.plan, setting_.blocks, space.keys());
    const bool rounds =
        (task_.kind == TaskKind::Finalise && task_.reads.size() > targets_) ||
        std::ranges::any_of(task_.reads, [&](const Ref& r) { return is_narrowed(r); });
    for (const Patch& patch : parts[0].patches) {
      std::vector<std::vector<Interval>> boxes = {patch.span};
      if (rounds) boxes = split_rows(patch.span, row_axes_, setting_.scratch.elements);
      for (const std::vector<Interval>& box : boxes) {
        for (const Cell& cell : cut(box, parts, {}, ragged)) build_cell(cell);
      }
    }
  }

  using State = std::vector<View>;  // one view per target

  // A reduce-scatter rounds what comes from other ranks to its wire type.
  [[nodiscard]] bool is_narrowed(const Ref& ref) const {
    const Alloc& alloc = setting_.plan.allocs[ref.alloc.index()];
    return task_.kind == TaskKind::Collective && task_.wire && *task_.wire != alloc.dtype &&
           alloc.rank != setting_.plan.queues[task_.queue.index()].rank;
  }

  void build_cell(const Cell& cell) {
    const State to(cell.views.begin(), cell.views.begin() + static_cast<std::ptrdiff_t>(targets_));
    std::vector<State> sources;
    scratch_used_ = 0;
    for (std::size_t i = targets_; i < cell.views.size(); i += targets_) {
      const auto first = cell.views.begin() + static_cast<std::ptrdiff_t>(i);
      State source(first, first + static_cast<std::ptrdiff_t>(targets_));
      if (source[0].data == nullptr) continue;
      if (is_narrowed(task_.reads[i - targets_])) source = narrow(cell, source);
      sources.push_back(std::move(source));
    }
    HP_CHECK(!sources.empty(), "a fold has a contribution to every block it writes");
    if (to[0].mode == WriteMode::Add) {
      for (const State& source : sources) combine(cell, to, source);
      return;
    }
    const bool in_place = sources.size() == 1 || to[0].mode == WriteMode::Init;
    State state = in_place ? to : make_wide(cell, to);
    // Scratch has as many rows as what it is made of.
    for (std::size_t t = 0; !in_place && t < targets_; ++t) state[t].used = sources[0][t].used;
    assign(cell, state, sources[0]);
    for (std::size_t i = 1; i < sources.size(); ++i) combine(cell, state, sources[i]);
    if (!in_place) assign(cell, to, state);
  }

  State narrow(const Cell& cell, const State& source) {
    State rounded = make_state(cell, source, *task_.wire);
    assign(cell, rounded, source);
    return rounded;
  }

  void assign(const Cell& cell, const State& to, const State& from) {
    for (std::size_t t = 0; t < targets_; ++t) {
      work_.actions.emplace_back(make_assign(cell, to[t], from[t]));
    }
  }

  void combine(const Cell& cell, const State& to, const State& from) {
    if (stmt_.monoid == Monoid::Lse) {
      combine_lse(cell, to, from);
    } else {
      work_.actions.emplace_back(make_add(cell, to[0], from[0]));
    }
  }

  void combine_lse(const Cell& cell, const State& to, State from) {
    HP_CHECK(to[0].dtype == to[1].dtype, "(o, l) states have one type");
    if (from[0].dtype != to[0].dtype || from[1].dtype != to[1].dtype) {  // came over a narrow wire
      const std::size_t mark = scratch_used_;
      const State wide = make_wide(cell, to);
      assign(cell, wide, from);
      from = wide;
      scratch_used_ = mark;  // the next source may overwrite it
    }
    work_.actions.emplace_back(combination(cell, to, from));
  }

  // The rows of the longest of l's axes go to the kernel, the other axes are loops around it.
  Combine combination(const Cell& cell, const State& to, const State& from) const {
    Combine fold{.o = to[0].data,
                 .l = to[1].data,
                 .o2 = from[0].data,
                 .l2 = from[1].data,
                 .dtype = to[0].dtype,
                 .loops = {}};
    const std::size_t rows = *std::ranges::max_element(
        row_axes_, {}, [&](std::size_t axis) { return cell.span[axis].size(); });
    const std::int64_t size = size_in_bytes(fold.dtype);
    for (std::size_t axis = 0; axis < cell.span.size(); ++axis) {
      const std::array<std::int64_t, 4> strides = {to[0].strides[axis], to[1].strides[axis],
                                                   from[0].strides[axis], from[1].strides[axis]};
      const std::int64_t length = cell.span[axis].size();
      if (axis == rows) {
        fold.rows = length;
        fold.row_strides = strides;
      } else if (std::ranges::find(row_axes_, axis) == row_axes_.end()) {
        HP_CHECK(strides[0] == 1 && strides[2] == 1, "values of a row lie one after the other");
        fold.value_dim = length;
      } else if (length > 1) {
        fold.loops.push_back({.length = length,
                              .bytes = {strides[0] * size, strides[1] * size, strides[2] * size,
                                        strides[3] * size}});
      }
    }
    return fold;
  }

  // The type in which (o, l) or a sum is combined before it is rounded into `like`.
  State make_wide(const Cell& cell, const State& like) {
    const bool wide = std::ranges::any_of(
        like, [](const View& view) { return state_dtype(view.dtype) == DType::F64; });
    return make_state(cell, like, wide ? DType::F64 : DType::F32);
  }

  // A state of the cell's shape in scratch memory, dense in the order of the axes.
  State make_state(const Cell& cell, const State& like, DType dtype) {
    State state;
    for (const View& view : like) {
      View dense{.data = nullptr,
                 .dtype = dtype,
                 .mode = WriteMode::Read,
                 .strides = std::vector<std::int64_t>(view.strides.size(), 0),
                 .used = view.used};
      std::int64_t elements = 1;
      for (std::size_t axis = view.strides.size(); axis-- > 0;) {
        if (view.strides[axis] == 0) continue;
        dense.strides[axis] = elements;
        elements *= cell.span[axis].size();
      }
      dense.data = reserve(elements * size_in_bytes(dense.dtype));
      state.push_back(std::move(dense));
    }
    return state;
  }

  // Scratch is handed out anew for every cell: its actions are over before the next cell's begin.
  // Where a piece is too small, actions already made keep it.
  std::byte* reserve(std::int64_t bytes) {
    if (scratch_used_ == scratch_.size()) scratch_.emplace_back();
    Piece& piece = scratch_[scratch_used_++];
    if (piece.bytes < bytes) piece = {.data = setting_.scratch.reserve(bytes), .bytes = bytes};
    return piece.data;
  }

  struct Piece {
    std::byte* data = nullptr;
    std::int64_t bytes = 0;
  };

  const Setting& setting_;
  const Task& task_;
  const Stmt& stmt_;
  std::size_t targets_;
  std::vector<std::size_t> row_axes_;  // the axes of the last target: l's, or all
  TaskWork work_;
  std::vector<Piece> scratch_;
  std::size_t scratch_used_ = 0;
};

}  // namespace

Checked<TaskWork> prepare_fold(const Setting& setting, const Task& task) {
  const Stmt& stmt = statement_of(setting.plan, task);
  const bool folds = stmt.monoid == Monoid::Sum || stmt.monoid == Monoid::Lse;
  if (!folds && task.reads.size() > targets_per_state(stmt)) {
    return make_diag(DiagCode::X008, {{"nest", task.nest}, {"monoid", print(stmt.monoid)}});
  }
  return FoldBuilder(setting, task).build();
}

}  // namespace harpe::actions
