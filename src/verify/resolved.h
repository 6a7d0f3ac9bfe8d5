#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.h"
#include "support/diag.h"
#include "verify/footprint.h"
#include "verify/model.h"
#include "verify/words.h"

namespace harpe::verifier {

// The plan with names replaced by indices and boxes by lists of cells. Races and terms are checked
// on it. Empty blocks (D12) are removed.
struct Cell {
  std::int32_t local = 0;  // within its slot's content
  std::int32_t block = 0;  // of the buffer
};

struct ResolvedRef {
  std::int32_t alloc = 0;
  std::int32_t buffer = 0;
  std::int32_t content = 0;  // of the slot; undefined if there are no cells
  WriteMode mode = WriteMode::Read;
  Cut cut;
  std::size_t first = 0;  // cell
  std::size_t count = 0;
};

struct ResolvedAlloc {
  std::int32_t footprint = 0;
  std::int64_t first_cell = 0;  // among all slots' cells in one row
};

// What to check: one execution of a plan, or two consecutive executions of the steps of a launch
// plan (verify/steps.h). The latter stores refs for the first execution only.
struct Scope {
  std::size_t tasks = 0;         // of one execution
  std::size_t private_from = 0;  // allocations from here on are private sums of kernels
  bool is_of_launches = false;
  bool takes_turns = false;         // other plans use the launches' memory between executions
  std::vector<bool> narrowed = {};  // per allocation: partial states are stored in 16 bits
  std::vector<bool> apart = {};     // per allocation: no other plan uses it
  [[nodiscard]] std::size_t task(std::int32_t id) const {  // in the first execution
    return static_cast<std::size_t>(id) % tasks;
  }
};

[[nodiscard]] inline Scope scope_of(const Plan& plan) {
  return {.tasks = plan.tasks.size(), .private_from = plan.allocs.size()};
}

class Resolved {
 public:
  // Requires: check_ids.
  // Errors: V203 too many cells, V211 a ref names two contents at once, V212 a block outside this
  // rank's home, V213 a block twice.
  [[nodiscard]] static Checked<Resolved> make(const Plan& plan, const Words& words,
                                              const Scope& scope);
  [[nodiscard]] static Checked<Resolved> make(const Plan& plan, const Model& model) {
    return make(plan, {plan, model}, scope_of(plan));
  }

  std::vector<Footprint> footprints;
  std::vector<ResolvedAlloc> allocs;
  std::vector<std::int32_t> statements;  // per task: index into Model::statements, or -1
  std::int64_t cell_count = 0;           // of all slots

  [[nodiscard]] const Footprint& footprint(std::int64_t alloc) const {
    return footprints[static_cast<std::size_t>(allocs[static_cast<std::size_t>(alloc)].footprint)];
  }
  [[nodiscard]] std::span<const ResolvedRef> reads(std::size_t task) const {
    return std::span(refs_).subspan(first_read_[task], first_write_[task] - first_read_[task]);
  }
  [[nodiscard]] std::span<const ResolvedRef> writes(std::size_t task) const {
    return std::span(refs_).subspan(first_write_[task], first_read_[task + 1] - first_write_[task]);
  }
  [[nodiscard]] std::span<const Cell> cells(const ResolvedRef& ref) const {
    return std::span(cells_).subspan(ref.first, ref.count);
  }
  // Index of a ref's cell among all slots' cells.
  [[nodiscard]] std::size_t cell_index(const ResolvedRef& ref, const Cell& cell) const {
    return static_cast<std::size_t>(allocs[static_cast<std::size_t>(ref.alloc)].first_cell +
                                    cell.local);
  }

 private:
  friend class Resolver;
  std::vector<ResolvedRef> refs_;
  std::vector<std::size_t> first_read_;  // per task, and one past the last
  std::vector<std::size_t> first_write_;
  std::vector<Cell> cells_;
};

}  // namespace harpe::verifier
