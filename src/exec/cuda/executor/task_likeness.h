#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/mask.h"
#include "plan/plan.h"
#include "plan/ref_layouts.h"

namespace harpe::cuda {

using launch::LaidRef;
using launch::RefLayouts;

// Which tasks of a plan become the same launches, but for where their operands begin: most of a
// large plan are like one that has been prepared already.
class TaskLikeness {
 public:
  using Key = std::vector<std::int32_t>;

  // `partials16`: allocations in 16 bits. Requires: all of it outlives this.
  TaskLikeness(const Plan& plan, const Blocks& blocks, RefLayouts& layouts,
               const std::vector<AllocId>& partials16);

  // Tasks with equal keys are alike: layouts of what they name, its types, alignment, and how far
  // origins are from each other; of what a mask by positions lets a query see, how far queries are
  // ahead of keys. None where more decides: routes, the order of ranks. `refs` are the task's
  // writes, then its reads.
  [[nodiscard]] std::optional<Key> key_of(TaskId task, const std::vector<LaidRef>& refs);

 private:
  // What a statement's masks ask of positions.
  struct MaskFacts {
    std::optional<ResolvedMask> by_position;
    bool by_data = false;  // tables say it for each position
  };
  struct NestFacts {
    std::int32_t number = 0;
    std::vector<int> digits;  // of its iterations
    bool has_route = false;
    std::vector<MaskFacts> masks;  // by statement
  };
  // By axis: where the task is, as iterations and references say; none where it has none of it.
  using Bases = std::map<int, std::int64_t>;

  [[nodiscard]] const NestFacts* facts_of(const std::string& nest);
  void add_iterations(const Task& task, const NestFacts& facts, Key& key, Bases& bases) const;
  void add_refs(const Task& task, const std::vector<LaidRef>& refs, Key& key, Bases& bases) const;
  static void add_mask(const MaskFacts& mask, Key& key, Bases& bases);

  const Plan& plan_;
  const Blocks& blocks_;
  RefLayouts& layouts_;
  std::map<std::string, NestFacts> nests_;
  std::map<std::string, std::int32_t> kernels_;  // that `patch` named
  std::vector<bool> is_half_;                    // by allocation
  std::vector<bool> is_ragged_;                  // by buffer
};

}  // namespace harpe::cuda
