#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/mask.h"
#include "plan/launch_plan.h"
#include "plan/plan.h"
#include "plan/ref_layouts.h"

namespace harpe::cuda {

using launch::LaidRef;
using launch::RefLayouts;

// Finds tasks of a plan with the same launches except for the places of their operands: most tasks
// of a large plan are like one that has been prepared already.
class TaskLikeness {
 public:
  using Key = std::vector<std::int32_t>;

  // `partials16`: allocations in 16 bits. Requires: all arguments outlive this.
  TaskLikeness(const Plan& plan, const Blocks& blocks, RefLayouts& layouts,
               const std::vector<AllocId>& partials16);

  // Tasks with equal keys are alike. A key contains the shapes of the task's operands, their types
  // and alignment, and along every axis which of them touch or overlap and in which order; under
  // masks by position, whether queries see all keys or none, or how far they are ahead of them.
  // None if more matters: routes, the order of ranks. `refs` are the task's writes, then its reads.
  [[nodiscard]] std::optional<Key> key_of(TaskId task, const std::vector<LaidRef>& refs);
  // The same for a step that is no task of the plan, on the rank of its queue.
  [[nodiscard]] std::optional<Key> key_of(const Task& step, const std::vector<LaidRef>& refs);

  // TaskAlone::leads. Requires: these are the kernels of a task that is like this one.
  [[nodiscard]] std::vector<std::int64_t> leads_of(const Task& task,
                                                   const std::vector<launch::Kernel>& kernels,
                                                   const std::vector<launch::Kernel>& prepared);

 private:
  // How a statement's masks depend on positions.
  struct MaskFacts {
    std::optional<ResolvedMask> by_position;
    bool is_absolute = false;  // more than the distance of queries and keys matters
  };
  struct NestFacts {
    std::int32_t number = 0;
    std::vector<int> axes;  // of its iterations
    bool has_route = false;
    bool has_renames = false;
    std::vector<MaskFacts> masks;  // by statement
  };
  // Part of an axis.
  struct Piece {
    int axis = 0;
    Interval along;
  };
  // Position of a piece on its axis. A run is a union of pieces that touch or overlap.
  struct Position {
    std::size_t run = 0;
    std::int64_t offset = 0;
  };

  [[nodiscard]] const NestFacts* facts_of(const std::string& nest);
  void add_iterations(const Task& task, const NestFacts& facts, Key& key);
  void add_refs(const Task& task, const std::vector<LaidRef>& refs, Key& key);
  void add_positions(Key& key);
  void add_mask(const MaskFacts& mask, Key& key) const;
  [[nodiscard]] std::int64_t begin_of(const launch::Place& place, int axis) const;

  const Plan& plan_;
  const Blocks& blocks_;
  RefLayouts& layouts_;
  std::map<std::string, NestFacts> nests_;
  std::map<std::string, std::int32_t> kernels_;  // named by `patch`
  std::vector<bool> is_half_;                    // by allocation
  std::vector<bool> is_ragged_;                  // by buffer
  // Of the current task:
  std::vector<Piece> pieces_;
  std::vector<std::size_t> order_;  // of pieces, by axis and position
  std::vector<Position> positions_;
  std::vector<Piece> runs_;
};

}  // namespace harpe::cuda
