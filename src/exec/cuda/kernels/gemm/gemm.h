#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "exec/cuda/kernels/gemm/device/gemm_args.h"
#include "exec/cuda/kernels/gemm/device/gemm_config.h"
#include "exec/cuda/kernels/launch_spec.h"
#include "exec/cuda/kernels/leaf_engine.h"
#include "exec/cuda/runtime/tensor_map_spec.h"
#include "leaves/leaf.h"
#include "support/diag.h"

namespace harpe::cuda {

// Columns [k_begin, k_begin + k_count) of a panel's A, row-major; or rows of its transpose.
struct GemmPieceSpec {
  DeviceAddress a = 0;
  std::int64_t stride = 0;  // elements from row to row, in memory
  std::int64_t k_begin = 0;
  std::int64_t k_count = 0;
  device::FlagWait ready{};
  DeviceAddress b = 0;  // of B of these columns, where that is apart; else it is in GemmSpec::b
};

// Values of C's shape in the type of A, to be added: as a product with the identity, so that they
// are loaded and waited for like operands. An infinity among them makes NaNs of the up to 255 rows
// that share its tile.
struct GemmAddendSpec {
  DeviceAddress address = 0;
  std::int64_t stride = 0;  // elements from row to row
  device::FlagWait ready{};
  bool is_in_data = false;  // its elements say that they are there (device/in_data.cuh)
};

// A pointwise function that C goes through before it is rounded and stored. It is the first
// operand.
struct GemmMapSpec {
  Leaf leaf = Leaf::Add;
  // Of a function of two operands: the other is one value for all rows of a column, or has C's
  // shape. In the type of A.
  bool is_row = false;
  friend bool operator==(const GemmMapSpec&, const GemmMapSpec&) = default;
};

// The other operand of a map beside a panel; address 0 of a function of one operand.
struct GemmMapOperandSpec {
  DeviceAddress address = 0;
  std::int64_t stride = 0;  // elements from row to row; 0: one row for all
};

// Consecutive rows of C with their A. Both may lie on a peer GPU.
struct GemmPanelSpec {
  std::int64_t rows = 0;
  std::vector<GemmPieceSpec> pieces;  // together the columns 0 .. k, in the order of use
  // Not -1: a panel without pieces, which has the rows of that one. It stores the same sums
  // elsewhere, or, with addends, their total and no sum of its own: then what other panels store
  // here may be among them.
  int rows_of = -1;
  // Of such a panel without addends: it stores what that one stores, its addends added.
  bool is_copy = false;
  DeviceAddress c = 0;
  std::int64_t c_stride = 0;
  DeviceAddress done = 0;  // u32 counter; 0: none
  std::vector<GemmAddendSpec> addends = {};
  std::vector<GemmMapOperandSpec> map_operands = {};  // as GemmSpec::maps
  int fused_store = -1;  // one of GemmSpec::fused_stores; then `done` is 0
  // Of few rows: who reads it awaits its elements, and the fused store raises nothing. The address
  // is 0 where it is to be lost.
  bool is_in_data = false;
  // Of a group: at which row of the array B it has its own, and how many of its rows are used. What
  // is written to the others is nobody's.
  std::int64_t b_first = 0;
  device::UsedRows used = {};
  std::int64_t likely_rows = 0;  // that are used, for the choice of a tile; 0: all
};

// C[m, n] = A[m, k] B[k, n]; with `add`, C += (f32). Addresses of A and B are multiples of 16 bytes
// and so are their strides; C may have any (then it is written element by element).
// Panels in a row may be groups, each with a B of its own in one array of `b_rows` rows (of B, or
// with KMajor of its transpose), and have rows known as the kernel runs. Groups wait for nothing,
// add to nothing, and raise nothing; their C is written by the copy engine.
struct GemmSpec {
  std::int64_t n = 0;
  std::int64_t k = 0;
  device::Element in = device::Element::BF16;
  device::Element out = device::Element::BF16;
  bool add = false;
  device::GemmLayout layout = device::GemmLayout::NMajor;
  bool m_major = false;  // A is stored as its transpose
  DeviceAddress b = 0;
  std::int64_t b_stride = 0;
  std::int64_t b_rows = 0;            // of groups that have B's of their own; 0: B is all there is
  std::vector<GemmPanelSpec> panels;  // in the order of use
  std::vector<device::RaiseTarget> fused_stores = {};  // raised once all their panels are stored
  device::WaitContext wait{};
  device::Bounds bounds{};  // what the kernel does at both ends of an execution
  std::vector<device::CopyJob> copies;
  int copy_blocks = 0;
  std::vector<GemmMapSpec> maps = {};  // in this order, behind addends
  // No kernel of the execution writes B, so that it may be read early; else it comes by the flags
  // of the pieces that it meets.
  bool b_is_fixed = false;
  LeafEngine engine = LeafEngine::Own;  // of another the strides and addresses may be any
};

// `blocks` is how many run at once. Errors: G041 an operand the copy engine cannot read; G042
// pieces that are not the columns 0 .. k, or are cut inside 64; G060 no kernel for such types,
// stores and addends; G062 too many or too few of something.
[[nodiscard]] Checked<Ok> check(const GemmSpec& spec, int blocks);

// Whether the tables of its panels and pieces are arguments of the kernel, not in memory.
[[nodiscard]] bool fit_in_arguments(const GemmSpec& spec);

// Whether the copy engine can write C.
[[nodiscard]] bool stores_in_bulk(const GemmSpec& spec);

// What runs for a spec: the variant, and how its last tiles are cut, or, of few rows, into how many
// streams B is, and how many blocks, or pairs of blocks, share each.
struct GemmChoice {
  device::GemmConfig config;
  int full_tiles = 0;
  int parts = 1;
  int group = 8;
  int stream_blocks = 1;
};

[[nodiscard]] bool has_addends(const GemmSpec& spec);
// Whether some are added to a panel's own sums.
[[nodiscard]] bool adds_to_sums(const GemmSpec& spec);
// How many panels have rows of A of their own. Panels that take the rows of another follow them.
[[nodiscard]] int row_panels(const GemmSpec& spec);
[[nodiscard]] bool has_groups(const GemmSpec& spec);
// Whether somebody waits for the panel to be stored.
[[nodiscard]] bool is_awaited(const GemmPanelSpec& panel);
// Whether rows of A that it is made of come by a flag.
[[nodiscard]] bool awaits_rows(const GemmPanelSpec& panel);

// The variants that can do a spec. Requires (here and below): check(spec, blocks) is ok.
[[nodiscard]] std::vector<device::GemmConfig> gemm_configs(const GemmSpec& spec);

// Into how many parts along K a tile of the spec can be cut at most.
[[nodiscard]] int most_parts(const GemmSpec& spec);

// The variant with no tile cut.
[[nodiscard]] GemmChoice whole_gemm(const GemmSpec& spec, const device::GemmConfig& config);

// Which variant, by a model of waves of tiles; a pure function.
[[nodiscard]] GemmChoice choose_gemm(const GemmSpec& spec, int blocks);

// The same with the variant given.
[[nodiscard]] GemmChoice cut_gemm(const GemmSpec& spec, const device::GemmConfig& config,
                                  int blocks);

// How much a panel's counter grows in one launch.
[[nodiscard]] std::uint32_t arrivals(const GemmPanelSpec& panel, std::int64_t n,
                                     const GemmChoice& choice);

[[nodiscard]] std::unique_ptr<KernelLaunch> make_launch(GemmSpec spec);

}  // namespace harpe::cuda
