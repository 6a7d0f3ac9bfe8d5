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

// The program as the search sees it: one nest that all schedules differ in, its axes, and the
// groups of buffers that always move together (commir.md 11.1).

// What an axis of the nest is to its leaf's shape (machine.h, LeafShape).
enum class AxisRole : std::uint8_t { Batch, Rows, Columns, Depth };

struct SearchAxis {
  std::string name;
  std::int64_t size = 1;
  AxisRole role = AxisRole::Batch;
};

// Buffers with the same axes, homes and direction: k with v, o with lse.
struct SearchGroup {
  std::vector<std::string> buffers;
  bool fixed = false;      // its home stays under any contract
  bool written = false;    // results: they leave by drains; operands come by stages
  std::vector<int> axes;   // of the nest, that index them
  std::vector<int> home;   // per mesh axis: the nest's axis it divides, or -1
  double bytes = 0;        // of all of them, whole
  double state_bytes = 0;  // of results while they are partial
  bool reduced = false;    // results that several iterations add to
  bool is_sum = false;     // by a sum: it may travel in the output's type, or in f32
};

// Another nest: it works where the home of its target is, and what it alone reads lives there too.
struct SideNest {
  std::string name;
  int group = 0;
  std::vector<std::string> buffers;  // that no group has
};

struct Problem {
  const Program* program = nullptr;
  const Mesh* mesh = nullptr;
  std::string nest;
  std::string leaf;
  std::string dtype;  // of the first operand, as a leaf rate names it
  std::vector<SearchAxis> axes;
  std::vector<SearchGroup> groups;
  std::vector<SideNest> side_nests;
  double flops = 0;           // of the nest, nothing hidden
  double depth = 1;           // extent of a product's whole axes, as of a head dimension
  bool whole_states = false;  // partial sums travel as they are kept
  struct Mask {
    int queries = 0, keys = 0;  // axes of the nest
    Visibility visible;
  };
  std::optional<Mask> mask;
  bool fixes_zigzag = false;  // a zigzag is one over all ranks, however long its table is
  double side_bytes = 0;      // of buffers that no group has, on one rank
};

// Where a buffer lives: per mesh axis, as given, the axes of the buffer that are divided along it.
using HomeAxes = std::vector<std::set<std::string>>;
[[nodiscard]] HomeAxes home_of(const Mesh& mesh, const NormalForm& form, const std::string& buffer);
// The same of all inputs and outputs in one text. Equal texts, equal contracts but for layouts.
[[nodiscard]] std::string homes_of(const Program& program, const Mesh& mesh,
                                   const NormalForm& form);

// `standard` gives the homes; those of `options.constraints` take precedence. Errors: S703 a
// program the search has no space for: routes, renamed accesses, several statements; its named
// schedules remain.
[[nodiscard]] Checked<Problem> make_problem(const Program& program, const Mesh& mesh,
                                            const NormalForm& standard,
                                            const SearchOptions& options);

}  // namespace harpe
