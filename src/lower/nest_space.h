#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/blocks.h"
#include "ir/form.h"
#include "ir/mask.h"
#include "ir/program.h"
#include "support/diag.h"

namespace harpe {

// One nest of the normal form with resolved names, and the function that all derivation uses: the
// block of a digit that rank m works on at time t (commir.md 4.1).

using Time = std::span<const std::int32_t>;  // indices of the open loops, outermost first

struct NestLoop {
  int digit = -1;
  std::int32_t extent = 1;
  std::vector<int> skew_axes;   // mesh axes
  std::vector<int> skew_loops;  // enclosing loops
  std::int64_t offset = 0;
  bool reverse = false;
};

struct NestMove {
  const Move* spec = nullptr;
  int buffer = -1;
  std::vector<int> over;  // mesh axes
  int position = 0;       // number of loops above it
  int chunk = -1;         // digit
};

// How a statement indexes an operand: per digit of the buffer the iteration digit it equals, or -1.
struct OperandMap {
  int buffer = -1;
  std::vector<int> follows;
};

struct NestStmt {
  const Stmt* stmt = nullptr;
  std::vector<OperandMap> operands;  // all reads of the leaf; those of masks come last
  std::vector<int> targets;          // buffers
  std::optional<ResolvedMask> mask;
};

// The names of these mesh axes.
[[nodiscard]] MeshRef names_of(const Blocks& blocks, const std::vector<int>& axes);

class NestSpace {
 public:
  // Errors: F101, F201-F206, F215, F218, F220-F222, F243, F306.
  [[nodiscard]] static Checked<NestSpace> make(const Program& program, const Blocks& blocks,
                                               int nest, const NestForm& form);

  int nest = -1;
  const Nest* program_nest = nullptr;
  const NestForm* form = nullptr;
  std::vector<int> digits;      // of the iteration space
  std::vector<NestLoop> loops;  // scheduled loops, then the leaf's `order` and `chunk` loops
  std::size_t scheduled_loops = 0;
  std::vector<std::vector<int>> par;  // per digit of Blocks: mesh axes, or empty
  std::vector<int> loop_of;           // per digit of Blocks: loop, or -1
  std::vector<NestMove> moves;        // in textual order
  std::vector<NestStmt> stmts;

  // The value of loop `loop`'s digit. Requires: `t` opens the loop.
  [[nodiscard]] std::int32_t loop_value(const Blocks& blocks, std::size_t loop, Time t,
                                        RankId rank) const;
  // The value of a digit at a rank inside the loops of `t`; kAll if nothing fixes it.
  [[nodiscard]] std::int32_t value(const Blocks& blocks, int digit, Time t, RankId rank) const;
};

}  // namespace harpe
