#include <algorithm>
#include <map>
#include <set>

#include "exec/actions/leaf.h"
#include "exec/actions/prepare.h"
#include "ir/mask_contract.h"
#include "leaves/leaf.h"
#include "plan/slots.h"
#include "support/check.h"

namespace harpe::actions {
namespace {

// The part of one axis that a box of blocks covers: ascending intervals that do not touch.
std::vector<Interval> runs_along(const Blocks& blocks, int axis, std::span<const Range> digits) {
  std::vector<Interval> intervals;
  for (const std::int64_t block : blocks_along(blocks, axis, digits)) {
    const Interval interval = blocks.interval(axis, block);
    if (interval.size() > 0) intervals.push_back(interval);
  }
  std::ranges::sort(intervals, {}, &Interval::begin);
  std::vector<Interval> runs;
  for (const Interval& interval : intervals) {
    if (!runs.empty() && runs.back().end == interval.begin) {
      runs.back().end = interval.end;
    } else {
      runs.push_back(interval);
    }
  }
  return runs;
}

using Boxes = std::vector<std::vector<Interval>>;

// Each box extended by each interval.
Boxes multiply(const Boxes& boxes, const std::vector<Interval>& intervals) {
  Boxes longer;
  longer.reserve(boxes.size() * intervals.size());
  for (const std::vector<Interval>& prefix : boxes) {
    for (const Interval& interval : intervals) {
      longer.push_back(prefix);
      longer.back().push_back(interval);
    }
  }
  return longer;
}

// A task's boxes of blocks as boxes of elements along the nest's axes, contiguous along each axis.
Boxes boxes_of(const Blocks& blocks, const Nest& nest, const Task& task) {
  Boxes result;
  for (const Box& box : task.iter) {
    Boxes product = {{}};
    std::size_t first = 0;
    for (const std::string& name : nest.over) {
      const int axis = blocks.find_axis(name);
      HP_CHECK(axis >= 0, "axis `" + name + "` of nest `" + nest.name + "`");
      const std::size_t digits = blocks.axes()[static_cast<std::size_t>(axis)].digits.size();
      HP_CHECK(first + digits <= box.size(), "digits of an iteration box");
      product = multiply(product, runs_along(blocks, axis, std::span(box).subspan(first, digits)));
      first += digits;
    }
    result.insert(result.end(), product.begin(), product.end());
  }
  return result;
}

using Operand = StatementWork::Operand;

std::vector<Operand> operands_of(const Setting& setting, const std::vector<Ref>& refs) {
  std::vector<Operand> operands;
  for (const Ref& ref : refs) {
    operands.push_back({.buffer = setting.plan.allocs[ref.alloc.index()].buffer,
                        .patches = patches_of(setting, ref)});
  }
  return operands;
}

// Turns a statement's work into leaf calls: one per logically contiguous box whose operands and
// targets each lie in one slot (commir.md D12).
class ComputeBuilder {
 public:
  ComputeBuilder(const Setting& setting, const StatementWork& work, const LeafCaller& caller)
      : setting_(setting),
        given_(work),
        caller_(caller),
        site_{.nest = *find_nest(setting.plan.program, work.nest),
              .stmt = statement_of(setting.plan, work.nest, work.stmt),
              .dims = {},
              .lengths = {},
              .names = {},
              .mask = {},
              .mask_reads = mask_reads(statement_of(setting.plan, work.nest, work.stmt)),
              .products = setting.products} {}

  Checked<TaskWork> build() {
    for (const std::string& name : site_.nest.over) {
      const int axis = setting_.blocks.find_axis(name);
      HP_CHECK(axis >= 0, "axis `" + name + "` of nest `" + site_.nest.name + "`");
      axis_index(axis);
    }
    for (const Access& access : site_.stmt.operands) add_participant(access, given_.reads);
    for (const Access& access : site_.stmt.targets) add_participant(access, given_.writes);
    for (const Access& access : site_.mask_reads) add_participant(access, given_.reads);
    resolve_mask();
    ragged_ = ragged_axis_of_space(setting_.plan, setting_.blocks, keys_);
    const Boxes boxes = whole_boxes();
    collect_cuts(boxes);
    if (is_replicated()) cut_at_blocks();
    for (const std::vector<Interval>& box : boxes) {
      for (const Cell& cell : cut(box, parts_, cuts_, ragged_)) HP_REQUIRE_OK(add_cell(cell));
    }
    add_identities();
    return std::move(work_);
  }

 private:
  // Opaque dimensions are separate axes, except for a leaf that matches them by position.
  std::size_t axis_index(AxisKey key) {
    const auto found = std::ranges::find(keys_, key);
    if (found != keys_.end()) return static_cast<std::size_t>(found - keys_.begin());
    keys_.push_back(key);
    const bool opaque = key < 0;  // the buffer determines its length
    const auto axis = static_cast<std::size_t>(opaque ? 0 : key);
    site_.lengths.push_back(opaque ? 0 : setting_.blocks.axes()[axis].size);
    site_.names.push_back(opaque ? "features" : setting_.blocks.axes()[axis].name);
    return keys_.size() - 1;
  }

  // The nest's axis that a buffer's axis runs along, after renames.
  [[nodiscard]] AxisKey renamed(const Access& access, AxisKey axis) const {
    const std::string& name = setting_.blocks.axes()[static_cast<std::size_t>(axis)].name;
    for (const Rename& rename : access.renames) {
      if (rename.axis == name && rename.member.empty()) {
        return setting_.blocks.find_axis(rename.source);
      }
    }
    return axis;
  }

  void add_participant(const Access& access, const std::vector<Operand>& operands) {
    const int buffer = setting_.blocks.find_buffer(access.buffer);
    HP_CHECK(buffer >= 0, "buffer `" + access.buffer + "`");
    const BufferTable& table = setting_.blocks.buffers()[static_cast<std::size_t>(buffer)];
    Participant part{.buffer = access.buffer, .axes = {}, .patches = {}};
    std::vector<std::vector<std::size_t>> dims;
    std::vector<std::size_t> opaque;
    AxisKey ordinal = 0;
    for (const DimTable& dim : table.dims) {
      dims.emplace_back();
      for (const int axis : dim.axes) {
        dims.back().push_back(axis_index(renamed(access, axis)));
        part.axes.push_back(dims.back().back());
      }
      if (!dim.axes.empty()) continue;
      const AxisKey participant = caller_.elementwise ? 0 : static_cast<AxisKey>(parts_.size());
      dims.back().push_back(axis_index(--ordinal - participant * kMaxOpaque));
      site_.lengths[dims.back().back()] = dim.opaque;
      opaque.push_back(dims.back().back());
    }
    part.axes.insert(part.axes.end(), opaque.begin(), opaque.end());
    for (const Operand& operand : operands) {
      if (operand.buffer != access.buffer) continue;
      part.patches.insert(part.patches.end(), operand.patches.begin(), operand.patches.end());
    }
    parts_.push_back(std::move(part));
    site_.dims.push_back(std::move(dims));
  }

  void resolve_mask() {
    site_.mask = resolve_masks(setting_.blocks, site_.stmt);
    if (!site_.mask) return;
    site_.mask->query_axis = static_cast<int>(axis_index(site_.mask->query_axis));
    site_.mask->key_axis = static_cast<int>(axis_index(site_.mask->key_axis));
  }

  // The boxes, extended by the whole of every axis that is not the nest's.
  [[nodiscard]] Boxes whole_boxes() const {
    Boxes boxes = given_.boxes;
    for (std::size_t i = site_.nest.over.size(); i < keys_.size(); ++i) {
      boxes = multiply(boxes, {{.begin = 0, .end = site_.lengths[i]}});
    }
    return boxes;
  }

  // Cuts all boxes along the targets' axes at every border, so that two cells contribute to the
  // same target or to disjoint ones: only then is "the first contribution" well defined.
  void collect_cuts(const Boxes& boxes) {
    std::vector<std::set<std::int64_t>> points(keys_.size());
    for (const std::vector<Interval>& box : boxes) {
      for (std::size_t axis = 0; axis < box.size(); ++axis) {
        points[axis].insert({box[axis].begin, box[axis].end});
      }
    }
    for (const Participant& part : parts_) {
      for (const Patch& patch : part.patches) {
        for (std::size_t i = 0; i < part.axes.size(); ++i) {
          points[part.axes[i]].insert({patch.span[i].begin, patch.span[i].end});
        }
      }
    }
    cuts_.resize(keys_.size());
    for (std::size_t part = site_.operands(); part < site_.targets_end(); ++part) {
      for (const std::size_t axis : parts_[part].axes) {
        cuts_[axis].assign(points[axis].begin(), points[axis].end());
      }
    }
  }

  // Ranks along a mesh axis that no digit is spread over compute the same, and replicas are equal
  // bit for bit (D9). A replica may hold a block at home where another has it in a slot, cut
  // differently.
  [[nodiscard]] bool is_replicated() const {
    std::set<std::string> used;
    if (const NestForm* const form = find_nest(setting_.plan.form, site_.nest.name)) {
      for (const NestItem& item : form->items) {
        if (const auto* const par = std::get_if<Par>(&item)) {
          used.insert(par->axes.begin(), par->axes.end());
        }
      }
    }
    return std::ranges::any_of(setting_.blocks.mesh().axes, [&](const MeshAxis& axis) {
      return axis.size > 1 && !used.contains(axis.name);
    });
  }

  // Makes replicas call the leaf alike: once per block, wherever operands lie.
  void cut_at_blocks() {
    for (std::size_t axis = 0; axis < site_.nest.over.size(); ++axis) {
      const auto& starts = setting_.blocks.axes()[static_cast<std::size_t>(keys_[axis])].starts;
      cuts_[axis].insert(cuts_[axis].end(), starts.begin(), starts.end());
    }
  }

  [[nodiscard]] Coverage coverage_of(const Cell& cell) const {
    if (!site_.mask) return Coverage::Full;
    return classify(site_.mask->visible,
                    cell.span[static_cast<std::size_t>(site_.mask->query_axis)],
                    cell.span[static_cast<std::size_t>(site_.mask->key_axis)]);
  }

  Checked<Ok> add_cell(const Cell& cell) {
    const Coverage coverage = coverage_of(cell);
    std::vector<bool> accumulate;
    for (std::size_t i = site_.operands(); i < site_.targets_end(); ++i) {
      const View& target = cell.views[i];
      HP_CHECK(target.data != nullptr, "a compute task names the blocks it writes");
      const bool first = target.mode == WriteMode::Init && !written_.contains(target.data);
      accumulate.push_back(!first);
      if (coverage != Coverage::Empty) {
        written_.insert(target.data);
      } else if (first) {
        untouched_.emplace(target.data, Untouched{cell, i});
      }
    }
    if (coverage == Coverage::Empty) return Ok{};
    for (const View& view : cell.views) {
      HP_CHECK(view.data != nullptr, "a compute task names the blocks it reads");
    }
    HP_TRY(Action action, caller_.call(site_, {.cell = cell, .accumulate = std::move(accumulate)}));
    work_.actions.push_back(std::move(action));
    return Ok{};
  }

  // Fills targets that this task writes first but contributes nothing to: later tasks add to them.
  void add_identities() {
    for (const auto& [data, part] : untouched_) {
      if (written_.contains(data)) continue;
      const double identity = identity_of(site_.stmt, part.participant - site_.operands());
      work_.actions.emplace_back(make_fill(part.cell, part.cell.views[part.participant], identity));
    }
  }

  static constexpr AxisKey kMaxOpaque = 64;  // dimensions of a buffer

  const Setting& setting_;
  const StatementWork& given_;
  const LeafCaller& caller_;
  LeafSite site_;
  std::vector<AxisKey> keys_;  // of the space: the nest's axes, then other axes of the buffers
  std::vector<Participant> parts_;
  std::vector<std::vector<std::int64_t>> cuts_;
  std::optional<RaggedAxis> ragged_;
  struct Untouched {
    Cell cell;
    std::size_t participant;
  };
  std::set<const std::byte*> written_;  // targets' parts of cells, by address
  std::map<const std::byte*, Untouched> untouched_;
  TaskWork work_;
};

}  // namespace

Checked<TaskWork> prepare_statement(const Setting& setting, const StatementWork& work) {
  const Stmt& stmt = statement_of(setting.plan, work.nest, work.stmt);
  const LeafCaller* const caller = find_leaf_caller(stmt.leaf);
  if (caller == nullptr) {
    return make_diag(DiagCode::X001, {{"leaf", stmt.leaf}, {"nest", work.nest}});
  }
  for (const Access& access : stmt.operands) {
    for (const Rename& rename : access.renames) {
      if (rename.member.empty()) continue;
      return make_diag(DiagCode::X009, {{"leaf", stmt.leaf},
                                        {"nest", work.nest},
                                        {"buffer", access.buffer},
                                        {"route", rename.source}});
    }
  }
  return ComputeBuilder(setting, work, *caller).build();
}

Checked<TaskWork> prepare_compute(const Setting& setting, const Task& task) {
  const LeafContract* const contract = find_leaf_contract(statement_of(setting.plan, task).leaf);
  if (contract != nullptr && contract->is_routed()) {
    return prepare_routed(setting, task);
  }
  const Nest& nest = *find_nest(setting.plan.program, task.nest);
  return prepare_statement(setting, {.nest = task.nest,
                                     .stmt = task.stmt,
                                     .boxes = boxes_of(setting.blocks, nest, task),
                                     .reads = operands_of(setting, task.reads),
                                     .writes = operands_of(setting, task.writes)});
}

}  // namespace harpe::actions
