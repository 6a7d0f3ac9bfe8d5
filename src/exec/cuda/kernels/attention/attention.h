#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "exec/cuda/kernels/attention/device/attention_args.h"
#include "exec/cuda/kernels/attention/device/attention_config.h"
#include "exec/cuda/kernels/attention/head_tensor.h"
#include "exec/cuda/kernels/launch_spec.h"
#include "exec/cuda/kernels/leaf_engine.h"
#include "exec/cuda/signals/device/signal_args.h"
#include "support/diag.h"

namespace harpe::cuda {

// Consecutive query rows and the place of their results, which may be on a peer GPU.
struct AttentionPanelSpec {
  std::int64_t rows = 0;
  std::int64_t position = 0;  // logical position of the first row
  HeadTensor queries;
  HeadTensor output;
  HeadTensor lse;                 // f32, natural logarithm; address 0: not stored
  HeadTensor carried_output;      // f32, only with `carried`; may be `output`
  DeviceAddress carried_lse = 0;  // with the strides of `lse`; 0: `lse` holds it
  device::FlagWait ready{};
  DeviceAddress done = 0;  // u32 counter, see `arrivals`; 0: none
};

// Consecutive keys and values that arrive together.
struct AttentionChunkSpec {
  std::int64_t rows = 0;
  std::int64_t position = 0;  // logical position of the first row
  HeadTensor keys;
  HeadTensor values;
  device::FlagWait ready{};
};

// An f32 state (output and lse) that another rank stores here.
struct AttentionAddendSpec {
  HeadTensor output;
  HeadTensor lse;
  device::FlagWait ready{};
};

// The place of consecutive heads of the panel's results. All results have equally many heads.
// Without addends the kernel stores its own f32 state. With addends it combines its own state with
// theirs, in their order, and stores what AttentionSpec::to_state says.
struct AttentionResultSpec {
  std::int64_t first_head = 0;
  HeadTensor output;  // from first_head on; may be on a peer GPU, like lse
  HeadTensor lse;
  std::vector<AttentionAddendSpec> addends = {};
  int fused_store = -1;  // index in AttentionSpec::fused_stores; -1: none
};

// A mask by positions, even if it hides nothing here: a query sees keys up to its own position, and
// with `window` > 0 at most `window` of them.
struct PositionRule {
  std::int64_t lead = 0;  // position of the first query minus that of the first key
  std::int64_t window = 0;
  friend bool operator==(const PositionRule&, const PositionRule&) = default;
};

// Tables in memory that the kernel reads to find which keys exist: 32-bit integers, strides in
// entries. Memory of keys and values that do not exist may hold anything.
struct KeyTables {
  DeviceAddress lengths = 0;  // number of keys of each batch entry; 0: all
  std::int64_t length_stride = 0;
  DeviceAddress pages = 0;  // page of the chunk that has the next keys; 0: keys are in order
  std::int64_t page_stride = 0;
  std::int64_t batch_stride = 0;  // from batch entry to batch entry, of pages
  std::int64_t page_count = 0;    // pages of a batch entry
  std::int64_t page = 0;          // keys of a page
  std::int64_t first_key = 0;     // index of the chunk's first row in the sequence, or the storage
};

// output = softmax(scale Q K^T + mask) V for every head and batch entry, and lse. With `carried`
// the result is as if the keys behind (carried_output, carried_lse) preceded these. With `to_state`
// the output is f32, for a later kernel to carry on. Requires: addresses and strides of tensors
// except lse are multiples of 16 bytes. Values of chunks are finite even where keys are hidden: in
// a tile with a visible key they are multiplied by weight 0, and 0·∞ would turn a row into NaN.
// Hidden keys may hold anything. Memory beyond the rows of a chunk or a panel is not read: TMA
// fills box rows there with zeros.
struct AttentionSpec {
  std::int64_t batch = 1;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t query_dim = 0;
  std::int64_t value_dim = 0;
  device::Element element = device::Element::BF16;
  bool carried = false;
  bool to_state = false;
  bool causal = false;                     // position p sees positions <= p
  std::int64_t window = 0;                 // > 0: p sees p - window + 1 to p
  std::optional<PositionRule> rule = {};   // with one panel and one chunk; used to join specs
  double scale = 0;                        // 0: 1 / sqrt(query_dim)
  std::vector<AttentionPanelSpec> panels;  // ascending in position, for balance
  std::vector<AttentionChunkSpec> chunks;  // in the order of use
  device::WaitContext wait{};
  device::Bounds bounds{};  // few queries: what the kernel does in place of Entry and Exit
  std::vector<device::CopyJob> copies;
  int copy_blocks = 0;
  LeafEngine engine = LeafEngine::Own;
  // > 1: the chunk's keys are cut into `parts` equal parts with thread blocks of their own, and a
  // second kernel joins their states (flash decoding). Only with one panel and one chunk, without
  // mask, waits and `carried`.
  int parts = 1;
  // > 0: the kernel for few queries (decode.h) runs it; the keys of all batch entries and key heads
  // are cut into `shares` equal shares.
  int shares = 0;
  std::optional<KeyTables> tables = {};  // only with shares
  // Only with shares, in place of the panel's output and lse: all heads, in their order.
  std::vector<AttentionResultSpec> results = {};
  std::vector<device::RaiseTarget> fused_stores = {};  // raised once all their results are stored
  bool keys_are_fixed = false;  // no kernel of the execution writes keys, values or tables
};

// How far a softmax reference may lie below its row's maximum, as a power of 2: weights stay below
// 2^8, far from the largest f16.
inline constexpr double kSlackLog2 = 8;

// The scale of the scores: AttentionSpec::scale, or the default.
[[nodiscard]] double scale_of(const AttentionSpec& spec);

// `blocks`: thread blocks that can be resident. Errors: G060 no kernel for these heads; G041 an
// address or stride that kernels cannot read; G062 a count is out of range; G063 the scale.
[[nodiscard]] Checked<Ok> check(const AttentionSpec& spec, int blocks);

// For few queries: as many parts as keep `blocks` thread blocks busy, each of at least 256 keys.
// 1 if the spec may not have parts.
[[nodiscard]] int choose_parts(const AttentionSpec& spec, int blocks);

// For panels of one query that sees all keys: turns the heads that share keys into rows of one
// head, so that the keys are read once. Other specs are returned unchanged.
[[nodiscard]] AttentionSpec with_groups_as_rows(AttentionSpec spec);

// The best configuration for a spec; with parts, that of the kernel that computes their states.
// Requires: check(spec, blocks) is ok.
[[nodiscard]] device::AttentionConfig choose_attention(const AttentionSpec& spec);

// Everything that a launch needs, except what is made on a GPU: encoded maps (in the order of
// `maps`: the panels' queries, then each chunk's keys and values), the ticket and the copy jobs.
struct AttentionPlan {
  device::AttentionConfig config;
  device::AttentionArgs args{};
  std::vector<TensorMapSpec> maps;
  int blocks = 0;  // of the grid, copying ones included
};

// Keys and values of the slices that run together should fit in a cache of this size.
inline constexpr std::int64_t kAttentionCacheBytes = std::int64_t{32} << 20;

// With parts, plans the kernel that computes their states; the panel's output and lse are then the
// dense states. Requires: check(spec, blocks) is ok, and the configuration is for these heads.
[[nodiscard]] AttentionPlan plan_attention(const AttentionSpec& spec,
                                           const device::AttentionConfig& config, int blocks);

// The argument that holds map `index` of a plan.
[[nodiscard]] device::TensorMap& map_of(device::AttentionArgs& args, std::size_t index);

// How much a panel's `done` grows in one launch.
[[nodiscard]] std::uint32_t arrivals(const AttentionSpec& spec, const AttentionPanelSpec& panel,
                                     const device::AttentionConfig& config);

[[nodiscard]] std::unique_ptr<KernelLaunch> make_launch(AttentionSpec spec);

}  // namespace harpe::cuda
