#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/form.h"
#include "ir/program.h"
#include "ir/visibility.h"
#include "machine/mesh.h"
#include "search/search.h"
#include "support/diag.h"

namespace harpe {

// The program as the search sees it: the one nest in which all schedules differ, its axes, and the
// groups of buffers that always move together (commir.md 11.1).

// The role of a nest's axis in its leaf's shape (machine.h, LeafShape).
enum class AxisRole : std::uint8_t { Batch, Rows, Columns, Depth };

struct SearchAxis {
  std::string name;
  std::int64_t size = 1;
  AxisRole role = AxisRole::Batch;
};

// Buffers with the same axes, homes and direction, such as k with v, or o with lse.
struct SearchGroup {
  std::vector<std::string> buffers;
  bool fixed = false;      // its home is fixed under any contract
  bool written = false;    // results, which leave by drains; operands come by stages
  std::vector<int> axes;   // axes of the nest that index them
  std::vector<int> home;   // per mesh axis: the axis of the nest that it divides, or -1
  double bytes = 0;        // of all buffers together, undivided
  double state_bytes = 0;  // of results while they are partial
  bool reduced = false;    // several iterations add to the results
  bool is_sum = false;     // they are sums: sent in the output's type, or in f32
};

// Another nest. It runs at the home of its target, and the buffers that only it reads live there
// too.
struct SideNest {
  std::string name;
  int group = 0;
  std::vector<std::string> buffers;  // buffers that belong to no group
};

struct Problem {
  const Program* program = nullptr;
  const Mesh* mesh = nullptr;
  std::string nest;
  std::string leaf;
  std::string dtype;  // of the first operand, as in a leaf rate
  std::vector<SearchAxis> axes;
  std::vector<SearchGroup> groups;
  std::vector<SideNest> side_nests;
  double flops = 0;           // of the nest, without masking
  double depth = 1;           // extent of a GEMM's undivided axes, such as a head dimension
  bool whole_states = false;  // partial sums are sent in the type in which they are kept
  struct Mask {
    int queries = 0, keys = 0;  // axes of the nest
    Visibility visible;
  };
  std::optional<Mask> mask;
  bool fixes_zigzag = false;  // a zigzag spans all ranks, however long its table is
  double side_bytes = 0;      // bytes of buffers without a group, on one rank
};

// A buffer's home: per given mesh axis, the axes of the buffer that are divided along it.
using HomeAxes = std::vector<std::set<std::string>>;
[[nodiscard]] HomeAxes home_of(const Mesh& mesh, const NormalForm& form, const std::string& buffer);
// The homes of all inputs and outputs as one text. Equal texts mean equal contracts, except
// layouts.
[[nodiscard]] std::string homes_of(const Program& program, const Mesh& mesh,
                                   const NormalForm& form);

// `standard` gives the homes; those of `options.constraints` take precedence. Errors: S703 a
// program without a factored space, because of routes, renamed accesses or several statements. Its
// named schedules remain.
[[nodiscard]] Checked<Problem> make_problem(const Program& program, const Mesh& mesh,
                                            const NormalForm& standard,
                                            const SearchOptions& options);

}  // namespace harpe
