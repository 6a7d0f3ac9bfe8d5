#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "exec/actions/loops.h"
#include "exec/actions/problems.h"
#include "exec/actions/route_actions.h"
#include "exec/actions/rows.h"
#include "exec/actions/view.h"

namespace harpe::actions {

// Tasks are resolved to actions, which hold every address, stride and type: running an action only
// computes.

// The rows of a cell along its ragged axis; actions process these one by one. A cell without such
// an axis has one row. Operands in the action's order, the result first.
template <std::size_t Operands>
struct SlotRows {
  Used used;
  std::int64_t capacity = 1;
  std::array<std::int64_t, Operands> strides{};  // elements
  std::int32_t* result = nullptr;                // receives the number of used rows

  // Returns the number of rows and stores the number of used rows for the result.
  [[nodiscard]] std::int64_t open() const {
    note_used(result, used);
    return used.of(capacity);
  }
};
template <std::size_t Operands>
[[nodiscard]] SlotRows<Operands> slot_rows(const Cell& cell,
                                           const std::array<const View*, Operands>& views);

// to = from, rounded to `to`'s type. Rows walk (to, from).
struct Assign {
  View to;
  View from;
  Rows rows;
  SlotRows<2> slots = {};
};

// to += from in the type of `to`, a partial state: a sum with two terms, whose rows may be ragged.
// Rows walk (to, from).
struct Add {
  View to;
  View from;
  Rows rows;
  SlotRows<2> slots = {};
};

struct Fill {
  View to;
  double value = 0;
  Rows rows;
};

// The maximum number of contributions that one action folds.
constexpr std::size_t kFoldSources = 8;

// to = the sum of the sources in their order, in `state`, rounded once to `to`'s type; `to` may be
// the first source. Rows walk (to, sources).
struct Sum {
  struct Source {
    View view;
    std::optional<DType> wire;  // type it is rounded to first
  };
  View to;
  std::vector<Source> from;
  DType state = DType::F32;
  Rows rows;
};

// (o, l) of `to` = the sources' (o, l) combined in their order, in `state`, and rounded once; `to`
// may be the first source. Operands of a loop: o and l of `to`, then of each source.
struct Combine {
  struct Side {
    std::byte* o = nullptr;
    std::byte* l = nullptr;
    DType o_dtype = DType::F32;
    DType l_dtype = DType::F32;
    std::array<std::int64_t, 2> row_strides{};  // elements
    std::optional<DType> wire = std::nullopt;   // of a source: type it is rounded to first
  };
  static constexpr std::size_t kOperands = 2 + 2 * kFoldSources;

  Side to;
  std::vector<Side> from;
  DType state = DType::F32;
  std::int64_t rows = 1;
  std::int64_t value_dim = 1;
  std::vector<Loop<kOperands>> loops;
};

// GEMMs, with loops over the axes that belong to no matrix; operands a, b, c.
struct Multiply {
  GemmProblem first;
  std::vector<Loop<3>> loops;
  Used used = {};                  // rows of c
  std::int32_t* result = nullptr;  // receives the number of used rows
};

// Tables that masks on data may read, after the other operands of a loop: documents, length, pages.
constexpr std::size_t kMaskTables = 3;

// Attention of every batch entry and head; operands q, k, v, o, l.
struct Attend {
  AttentionProblem first;
  std::vector<Loop<5 + kMaskTables>> loops;
};

// Backward of attention for every batch entry and head; operands q, k, v, do, lse, delta, dq, dk,
// dv. Iterations of a reducing loop share dk and dv, never dq.
struct Differentiate {
  AttentionBackwardProblem first;
  std::vector<Loop<9 + kMaskTables>> loops;
};

// Dot products of rows; operands a, b, c.
struct RowDot {
  RowDotProblem first;
  std::vector<Loop<3>> loops;
};

// Residual connections and norms of rows; operands x, residual, weight, sum, y.
struct AddRmsNorm {
  AddRmsNormProblem first;
  std::vector<Loop<5>> loops;
};

// to = function(a, b), element by element. Rows walk (to, a, b) around the longest axis of `to`.
struct Apply {
  PointwiseProblem first;
  Rows rows;
  SlotRows<3> slots = {};
};

using Action =
    std::variant<Assign, Add, Sum, Fill, Combine, Multiply, Attend, Differentiate, RowDot,
                 AddRmsNorm, Apply, ChooseExperts, LimitChoices, GatherRows, CombineRows>;

// The rows of a transfer: how many are used, and the capacity.
struct SlotShare {
  Used used;
  std::int64_t capacity = 0;
  std::int64_t elements = 1;  // of a row
};

// A task, ready to run: its actions in order.
struct TaskWork {
  std::vector<Action> actions;
  std::vector<SlotShare> shares;  // of transfers whose size depends on the routing
};

[[nodiscard]] Assign make_assign(const Cell& cell, const View& to, const View& from);
[[nodiscard]] Add make_add(const Cell& cell, const View& to, const View& from);
// Requires: the cell has no ragged axis; 1 to kFoldSources sources.
[[nodiscard]] Sum make_sum(const Cell& cell, const View& to, std::vector<Sum::Source> from,
                           DType state);
[[nodiscard]] Fill make_fill(const Cell& cell, const View& to, double value);

}  // namespace harpe::actions
