#include <algorithm>
#include <iterator>
#include <optional>

#include "exec/actions/prepare.h"
#include "support/check.h"

namespace harpe::actions {
namespace {

// The buffers of one state; their axes match by key: (o, l) of a logsumexp share all of l's.
class StateSpace {
 public:
  explicit StateSpace(const Setting& setting) : setting_(setting) {}

  Participant add(const StatementWork::Operand& part) {
    const int buffer = setting_.blocks.find_buffer(part.buffer);
    Participant participant{.buffer = part.buffer, .axes = {}, .patches = part.patches};
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

// Splits a box along its row axes until each part has at most `most` elements.
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

using Operand = StatementWork::Operand;

// The targets and sources of a fold, the parts of one state adjacent.
struct FoldWork {
  const Stmt& stmt;
  std::vector<Operand> writes;
  std::vector<Operand> reads;
  std::vector<std::optional<DType>> wires;  // of reads: type it is rounded to first
};

// Builds the actions of one Fold, Finalise or ReduceScatter.
class FoldBuilder {
 public:
  FoldBuilder(const Setting& setting, FoldWork fold)
      : setting_(setting),
        fold_(std::move(fold)),
        stmt_(fold_.stmt),
        targets_(targets_per_state(stmt_)) {}

  TaskWork build() {
    HP_CHECK(fold_.writes.size() % targets_ == 0 && fold_.reads.size() % targets_ == 0,
             "one reference per target of a state");
    for (std::size_t group = 0; group < fold_.writes.size(); group += targets_) build_group(group);
    return std::move(work_);
  }

 private:
  // Participants: the targets of the group, then every source's.
  void build_group(std::size_t group) {
    StateSpace space(setting_);
    std::vector<Participant> parts;
    parts.reserve(targets_ + fold_.reads.size());
    for (std::size_t t = 0; t < targets_; ++t) parts.push_back(space.add(fold_.writes[group + t]));
    for (const Operand& read : fold_.reads) parts.push_back(space.add(read));
    row_axes_ = parts[targets_ - 1].axes;
    const auto ragged = ragged_axis_of_space(setting_.plan, setting_.blocks, space.keys());
    // Intermediate results between actions lie in scratch, for some of the rows at a time.
    const bool needs_scratch = ragged.has_value() || fold_.reads.size() > targets_ * kFoldSources;
    for (const Patch& patch : parts[0].patches) {
      std::vector<std::vector<Interval>> boxes = {patch.span};
      if (needs_scratch) boxes = split_rows(patch.span, row_axes_, setting_.scratch.elements);
      for (const std::vector<Interval>& box : boxes) {
        for (const Cell& cell : cut(box, parts, {}, ragged)) build_cell(cell);
      }
    }
  }

  using State = std::vector<View>;  // one view per target

  struct Source {
    State state;
    std::optional<DType> wire = std::nullopt;
  };

  void build_cell(const Cell& cell) {
    const State to(cell.views.begin(), cell.views.begin() + static_cast<std::ptrdiff_t>(targets_));
    std::vector<Source> sources;
    scratch_used_ = 0;
    for (std::size_t i = targets_; i < cell.views.size(); i += targets_) {
      const auto first = cell.views.begin() + static_cast<std::ptrdiff_t>(i);
      const State source(first, first + static_cast<std::ptrdiff_t>(targets_));
      if (source[0].data == nullptr) continue;
      sources.push_back({.state = source, .wire = fold_.wires[i - targets_]});
    }
    HP_CHECK(!sources.empty(), "a fold has a contribution to every block it writes");
    if (to[0].mode == WriteMode::Add) sources.insert(sources.begin(), {.state = to});
    if (cell.slot_axis) return add_ragged(cell, to, sources);
    if (sources.size() == 1 && !sources.front().wire) return assign(cell, to, sources[0].state);
    fold(cell, to, std::move(sources));
  }

  // Folds kFoldSources sources at a time. Intermediate sums lie in `to`, or in scratch if `to` is
  // rounded.
  void fold(const Cell& cell, const State& to, std::vector<Source> sources) {
    const bool rounds = to[0].mode == WriteMode::Set;
    State between;
    while (sources.size() > kFoldSources) {
      if (between.empty()) between = rounds ? make_wide(cell, to) : to;
      const auto end = sources.begin() + static_cast<std::ptrdiff_t>(kFoldSources);
      fold_once(cell, between, {sources.begin(), end});
      sources.erase(sources.begin(), end);
      sources.insert(sources.begin(), {.state = between});
    }
    fold_once(cell, to, sources);
  }

  void fold_once(const Cell& cell, const State& to, const std::vector<Source>& sources) {
    if (stmt_.monoid == Monoid::Lse) {
      work_.actions.emplace_back(combination(cell, to, sources));
      return;
    }
    std::vector<Sum::Source> from;
    for (const Source& source : sources) {
      from.push_back({.view = source.state[0], .wire = source.wire});
    }
    work_.actions.emplace_back(make_sum(cell, to[0], std::move(from), type_between(to)));
  }

  // Unused rows hold no numbers, so rows are processed one by one.
  void add_ragged(const Cell& cell, const State& to, const std::vector<Source>& sources) {
    HP_CHECK(targets_ == 1, "no states of several numbers are ragged");
    const bool rounds = to[0].mode == WriteMode::Set && sources.size() > 1;
    State state = rounds ? make_wide(cell, to) : to;
    // Scratch has as many rows as the first source.
    if (rounds) state[0].used = sources.front().state[0].used;
    if (to[0].mode != WriteMode::Add) assign(cell, state, narrowed(cell, sources.front()));
    for (std::size_t i = 1; i < sources.size(); ++i) {
      work_.actions.emplace_back(make_add(cell, state[0], narrowed(cell, sources[i])[0]));
    }
    if (rounds) assign(cell, to, state);
  }

  State narrowed(const Cell& cell, const Source& source) {
    if (!source.wire) return source.state;
    State rounded = make_state(cell, source.state, *source.wire);
    assign(cell, rounded, source.state);
    return rounded;
  }

  void assign(const Cell& cell, const State& to, const State& from) {
    for (std::size_t t = 0; t < targets_; ++t) {
      work_.actions.emplace_back(make_assign(cell, to[t], from[t]));
    }
  }

  [[nodiscard]] static Combine::Side side_of(const State& state, std::optional<DType> wire) {
    return {.o = state[0].data,
            .l = state[1].data,
            .o_dtype = state[0].dtype,
            .l_dtype = state[1].dtype,
            .wire = wire};
  }

  // The kernel runs over the longest of l's axes; loops run over the others.
  [[nodiscard]] Combine combination(const Cell& cell, const State& to,
                                    const std::vector<Source>& sources) const {
    Combine fold{
        .to = side_of(to, std::nullopt), .from = {}, .state = type_between(to), .loops = {}};
    std::vector<const State*> states = {&to};
    for (const Source& source : sources) {
      fold.from.push_back(side_of(source.state, source.wire));
      states.push_back(&source.state);
    }
    const std::size_t rows = *std::ranges::max_element(
        row_axes_, {}, [&](std::size_t axis) { return cell.span[axis].size(); });
    for (std::size_t axis = 0; axis < cell.span.size(); ++axis) {
      const std::int64_t length = cell.span[axis].size();
      const bool is_value = std::ranges::find(row_axes_, axis) == row_axes_.end();
      if (is_value) fold.value_dim = length;
      Loop<Combine::kOperands> loop{.length = length, .bytes = {}};
      for (std::size_t i = 0; i < states.size(); ++i) {
        Combine::Side& side = i == 0 ? fold.to : fold.from[i - 1];
        const std::array<std::int64_t, 2> strides = {(*states[i])[0].strides[axis],
                                                     (*states[i])[1].strides[axis]};
        HP_CHECK(!is_value || strides[0] == 1, "values of a row lie one after the other");
        if (axis == rows) side.row_strides = strides;
        loop.bytes[2 * i] = strides[0] * size_in_bytes(side.o_dtype);
        loop.bytes[2 * i + 1] = strides[1] * size_in_bytes(side.l_dtype);
      }
      if (axis == rows) fold.rows = length;
      if (axis != rows && !is_value && length > 1) fold.loops.push_back(loop);
    }
    return fold;
  }

  // The type in which (o, l) or a sum is folded before it is rounded into `to`.
  [[nodiscard]] static DType type_between(const State& to) {
    const bool is_wide = std::ranges::any_of(
        to, [](const View& view) { return state_dtype(view.dtype) == DType::F64; });
    return is_wide ? DType::F64 : DType::F32;
  }

  State make_wide(const Cell& cell, const State& like) {
    return make_state(cell, like, type_between(like));
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

  // All cells share scratch, because a cell's actions end before the next cell's begin. If a piece
  // is too small, a larger one replaces it; earlier actions keep the smaller one.
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
  const FoldWork fold_;
  const Stmt& stmt_;
  std::size_t targets_;
  std::vector<std::size_t> row_axes_;  // the axes of the last target: l's, or all
  TaskWork work_;
  std::vector<Piece> scratch_;
  std::size_t scratch_used_ = 0;
};

// A reduce-scatter rounds operands from other ranks to its wire type.
std::optional<DType> wire_of(const Setting& setting, const Task& task, const Ref& ref) {
  const Alloc& alloc = setting.plan.allocs[ref.alloc.index()];
  const bool is_rounded = task.kind == TaskKind::Collective && task.wire != alloc.dtype &&
                          alloc.rank != setting.plan.queues[task.queue.index()].rank;
  return is_rounded ? task.wire : std::nullopt;
}

Operand operand_of(const Setting& setting, const Ref& ref) {
  return {.buffer = setting.plan.allocs[ref.alloc.index()].buffer,
          .patches = patches_of(setting, ref)};
}

}  // namespace

Checked<TaskWork> prepare_fold(const Setting& setting, const Task& task) {
  const Stmt& stmt = statement_of(setting.plan, task);
  const bool folds = stmt.monoid == Monoid::Sum || stmt.monoid == Monoid::Lse;
  if (!folds && task.reads.size() > targets_per_state(stmt)) {
    return make_diag(DiagCode::X008, {{"nest", task.nest}, {"monoid", print(stmt.monoid)}});
  }
  FoldWork fold{.stmt = stmt, .writes = {}, .reads = {}, .wires = {}};
  for (const Ref& ref : task.writes) fold.writes.push_back(operand_of(setting, ref));
  for (const Ref& ref : task.reads) {
    fold.reads.push_back(operand_of(setting, ref));
    fold.wires.push_back(wire_of(setting, task, ref));
  }
  return FoldBuilder(setting, std::move(fold)).build();
}

TaskWork prepare_addend(const Setting& setting, const Stmt& stmt, std::vector<Operand> to,
                        std::vector<Operand> from) {
  std::vector<std::optional<DType>> wires(from.size());
  return FoldBuilder(setting, {.stmt = stmt,
                               .writes = std::move(to),
                               .reads = std::move(from),
                               .wires = std::move(wires)})
      .build();
}

}  // namespace harpe::actions
