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

// One K chunk of a panel: columns [k_begin, k_begin + k_count) of its A, row-major, or, with
// m_major, these rows of A's transpose.
struct GemmKChunkSpec {
  DeviceAddress a = 0;
  std::int64_t stride = 0;  // elements from row to row, in memory
  std::int64_t k_begin = 0;
  std::int64_t k_count = 0;
  device::FlagWait ready{};
  DeviceAddress b = 0;  // the chunk's own B; 0: its B is the part of GemmSpec::b at k_begin
};

// A matrix of C's shape, in the type of A, that is added to C. Tile kernels multiply it by the
// identity on the tensor cores, so they load it and wait for it like an operand. An infinite
// element turns the up to 255 other rows of its cluster's tile into NaN, because 0·∞ is NaN.
struct GemmAddendSpec {
  DeviceAddress address = 0;
  std::int64_t stride = 0;  // elements from row to row
  device::FlagWait ready{};
  bool is_in_data = false;  // each element is its own arrival signal (device/in_data.cuh)
};

// A pointwise function that is applied to C before it is rounded and stored. C is its first
// operand.
struct GemmMapSpec {
  Leaf leaf = Leaf::Add;
  // Functions of two operands: the second, in the type of A, is one row that is broadcast over
  // C's rows; false: it has C's shape.
  bool is_row = false;
  friend bool operator==(const GemmMapSpec&, const GemmMapSpec&) = default;
};

// The second operand of a map for one panel; address 0: the function has one operand.
struct GemmMapOperandSpec {
  DeviceAddress address = 0;
  std::int64_t stride = 0;  // elements from row to row; 0: one row for all
};

// A row panel: consecutive rows of C with their A. Both may lie on a peer GPU.
struct GemmPanelSpec {
  std::int64_t rows = 0;
  std::vector<GemmKChunkSpec> k_chunks;  // K chunks in the order of use; they cover columns 0 .. k
  // The panel whose rows this one shares; -1: none. A panel that shares rows has no K chunks.
  // Without addends it stores the other panel's sums a second time. With addends it stores only
  // their total; among them may be what other panels of this kernel store on this rank.
  int rows_of = -1;
  // With `rows_of` and without addends: it stores the other panel's result, addends included.
  bool is_copy = false;
  DeviceAddress c = 0;
  std::int64_t c_stride = 0;
  DeviceAddress done = 0;  // u32 counter; 0: none
  std::vector<GemmAddendSpec> addends = {};
  std::vector<GemmMapOperandSpec> map_operands = {};  // one for each of GemmSpec::maps
  int fused_store = -1;  // index in GemmSpec::fused_stores; then `done` is 0
  // By threads: readers poll the stored elements, and the fused store raises no signal. `c` is 0
  // where a test drops the signal: then nothing is stored.
  bool is_in_data = false;
  // Grouped GEMM: the first row of the group's B in the array of all B, and how many rows of the
  // panel are in use. The kernel may write the unused rows of C; nothing reads them.
  std::int64_t b_first = 0;
  device::UsedRows used = {};
  std::int64_t likely_rows = 0;  // expected rows in use, for the choice of a tile; 0: all
};

// C[m, n] = A[m, k] B[k, n]; with `add`, C += A B in f32. Addresses and strides of A and B are
// multiples of 16 bytes. C may have any; where TMA cannot store it, threads store its elements.
// In a grouped GEMM consecutive panels with one `b_first` are a group. Each group has its own B in
// one array of `b_rows` rows (of B, or with KMajor of its transpose), and the kernel reads at run
// time how many rows are in use. Groups wait for no flag, do not accumulate into C and raise no
// signal; TMA stores their C.
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
  std::int64_t b_rows = 0;  // rows of the array that holds every group's B; 0: one B for all panels
  std::vector<GemmPanelSpec> panels;                   // in the order of use
  std::vector<device::RaiseTarget> fused_stores = {};  // raised once all their panels are stored
  device::WaitContext wait{};
  device::Bounds bounds{};  // what the kernel does in place of Entry and Exit
  std::vector<device::CopyJob> copies;
  int copy_blocks = 0;
  std::vector<GemmMapSpec> maps = {};  // applied in this order, after the addends
  // No kernel of the execution writes B, so it may be loaded before flags are up. Otherwise the
  // flag of a K chunk announces the B of that chunk too.
  bool b_is_fixed = false;
  LeafEngine engine = LeafEngine::Own;  // a library takes any strides and addresses
};

// `blocks`: thread blocks that run at once. Errors: G041 TMA cannot read an operand; G042 the K
// chunks do not cover columns 0 .. k once, or one does not begin at a multiple of 64; G060 no
// kernel for these types, stores and addends; G062 a count is out of range.
[[nodiscard]] Checked<Ok> check(const GemmSpec& spec, int blocks);

// Whether the tables of panels and K chunks fit in the kernel's arguments; else they are in memory.
[[nodiscard]] bool fit_in_arguments(const GemmSpec& spec);

// Whether the table of copies is in the kernel's arguments; else it is in memory. It is there if it
// fits, and no kernel for few rows may be chosen, which look for it in memory.
[[nodiscard]] bool has_copies_in_arguments(const GemmSpec& spec);

// Whether TMA can store C.
[[nodiscard]] bool stores_in_bulk(const GemmSpec& spec);

// The variant for a spec and its cut. The tiles after the first `full_tiles` are cut into `parts`
// along K. For few rows, `parts` is the number of streams that B is cut into, and `stream_blocks`
// the number of thread blocks, or pairs of blocks, that share a stream. `joined` > 0: from this
// ticket on, a tile or a part of one, the thread blocks that copy compute too, behind their copies.
struct GemmChoice {
  device::GemmConfig config;
  int full_tiles = 0;
  int parts = 1;
  int group = 8;
  int stream_blocks = 1;
  int joined = 0;
};

[[nodiscard]] bool has_addends(const GemmSpec& spec);
// The tiles of all clusters; a cluster's tiles count as one. Panels without rows of their own have
// none.
[[nodiscard]] std::int64_t cluster_tiles(const GemmSpec& spec, const device::GemmConfig& config);
[[nodiscard]] std::int64_t cluster_tiles(const GemmSpec& spec, const device::GemmConfig& config,
                                         const GemmPanelSpec& panel);
// K blocks of the shortest panel, without addends: a cut must leave some to every part of it.
[[nodiscard]] std::int64_t least_blocks(const GemmSpec& spec);
// Whether copying thread blocks may compute behind their copies: no copy waits for a flag.
[[nodiscard]] bool can_join(const GemmSpec& spec);
// Whether a panel has its own sums and adds those of other ranks, and whether any does.
[[nodiscard]] bool adds_to_sums(const GemmPanelSpec& panel);
[[nodiscard]] bool adds_to_sums(const GemmSpec& spec);
// Whether the kernel adds up what all ranks have stored here, its own sums among them.
[[nodiscard]] bool adds_up_all(const GemmSpec& spec);
// Whether a panel's own sums leave as they are: another rank adds them.
[[nodiscard]] bool sends_sums(const GemmPanelSpec& panel);
// The number of panels with their own rows of A. They precede the panels that share rows.
[[nodiscard]] int row_panels(const GemmSpec& spec);
[[nodiscard]] bool has_groups(const GemmSpec& spec);
// Whether the kernel publishes that the panel is stored, by a counter or by a fused store.
[[nodiscard]] bool is_awaited(const GemmPanelSpec& panel);
// Whether any of its K chunks waits for a flag.
[[nodiscard]] bool awaits_rows(const GemmPanelSpec& panel);

// The variants that can run a spec. Requires (here and below): check(spec, blocks) is ok.
[[nodiscard]] std::vector<device::GemmConfig> gemm_configs(const GemmSpec& spec);

// The most parts along K that a tile of the spec can be cut into.
[[nodiscard]] int most_parts(const GemmSpec& spec);

// The variant with no tile cut.
[[nodiscard]] GemmChoice whole_gemm(const GemmSpec& spec, const device::GemmConfig& config);

// Chooses a variant and its cut by a model of waves of tiles; a pure function.
[[nodiscard]] GemmChoice choose_gemm(const GemmSpec& spec, int blocks);

// The same for a given variant.
[[nodiscard]] GemmChoice cut_gemm(const GemmSpec& spec, const device::GemmConfig& config,
                                  int blocks);

// How much a panel's counter grows in one launch.
[[nodiscard]] std::uint32_t arrivals(const GemmPanelSpec& panel, std::int64_t n,
                                     const GemmChoice& choice);

// GemmArgs::last_clocks on so many clusters.
[[nodiscard]] int last_clocks(const GemmSpec& spec, const device::GemmConfig& config, int clusters);

[[nodiscard]] std::unique_ptr<KernelLaunch> make_launch(GemmSpec spec);

}  // namespace harpe::cuda
