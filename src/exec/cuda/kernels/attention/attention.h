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

// Consecutive query rows and where their results go, which may be a peer GPU.
struct AttentionPanelSpec {
  std::int64_t rows = 0;
  std::int64_t position = 0;  // logical, of the first row
  HeadTensor queries;
  HeadTensor output;
  HeadTensor lse;                 // f32, natural logarithm; address 0: not wanted
  HeadTensor carried_output;      // f32, with `carried` alone; may be `output`
  DeviceAddress carried_lse = 0;  // with the strides of `lse`; 0: it is what `lse` holds
  device::FlagWait ready{};
  DeviceAddress done = 0;  // u32 counter, see `arrivals`; 0: none
};

// Consecutive keys and values that arrive together.
struct AttentionChunkSpec {
  std::int64_t rows = 0;
  std::int64_t position = 0;  // logical, of the first row
  HeadTensor keys;
  HeadTensor values;
  device::FlagWait ready{};
};

// A state of f32 that another rank has stored here.
struct AttentionAddendSpec {
  HeadTensor output;
  HeadTensor lse;
  device::FlagWait ready{};
};

// Where consecutive heads of a panel's results go, of which there are as many in each. Without
// addends, a state of f32; else what AttentionSpec::to_state says, the addends in their order
// behind what the kernel has made.
struct AttentionResultSpec {
  std::int64_t first_head = 0;
  HeadTensor output;  // from first_head on; may be a peer GPU's, as lse
  HeadTensor lse;
  std::vector<AttentionAddendSpec> addends = {};
  int fused_store = -1;  // one of AttentionSpec::fused_stores
};

// A mask by positions, whether or not it hides anything here: queries see keys up to their own
// position, and where `window` > 0 so many.
struct PositionRule {
  std::int64_t lead = 0;  // how far the first query is ahead of the first key
  std::int64_t window = 0;
  friend bool operator==(const PositionRule&, const PositionRule&) = default;
};

// Which keys there are, as tables in memory say when a kernel runs: 32-bit integers, strides in
// entries. Memory of other keys and values may hold anything.
struct KeyTables {
  DeviceAddress lengths = 0;  // how many keys each batch entry has; 0: all
  std::int64_t length_stride = 0;
  DeviceAddress pages = 0;  // which page of the storage, the chunk, has the next keys; 0: in order
  std::int64_t page_stride = 0;
  std::int64_t batch_stride = 0;  // of pages
  std::int64_t page_count = 0;    // of a batch entry
  std::int64_t page = 0;          // keys of one
  std::int64_t first_key = 0;     // place of the chunk's first row among all
};

// output = softmax(scale Q K^T + mask) V for every head and batch entry, and lse. Where `carried`,
// as if the keys behind (carried_output, carried_lse) had come first; where `to_state`, the
// output is f32, to be carried on. Addresses and strides of tensors are multiples of 16 bytes;
// those of lse need not be. A key that the mask hides from a query still meets it with weight 0
// where it shares a tile with one that is seen: values of chunks are finite, seen or not, or NaN
// reach rows that see none of them. Keys may be anything where they are hidden. Memory behind a
// chunk's or a panel's rows is not read: boxes that reach beyond them are filled with zeros.
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
  std::optional<PositionRule> rule = {};   // of one panel and one chunk; merging goes by it
  double scale = 0;                        // 0: 1 / sqrt(query_dim)
  std::vector<AttentionPanelSpec> panels;  // ascending in position, for balance
  std::vector<AttentionChunkSpec> chunks;  // in the order of use
  device::WaitContext wait{};
  device::Bounds bounds{};  // where the kernel for few queries begins and ends an execution
  std::vector<device::CopyJob> copies;
  int copy_blocks = 0;
  LeafEngine engine = LeafEngine::Own;
  // > 1: the chunk's keys in so many equal parts, each by blocks of its own, and their states
  // joined behind that (flash decoding). Of one panel and one chunk, without a mask, waits or
  // `carried`.
  int parts = 1;
  // > 0: by the kernel for few queries (decode.h), the keys of all batch entries and key heads cut
  // into so many equal shares.
  int shares = 0;
  std::optional<KeyTables> tables = {};  // with shares alone
  // With shares alone, instead of the panel's: all heads, in their order.
  std::vector<AttentionResultSpec> results = {};
  std::vector<device::RaiseTarget> fused_stores = {};  // raised once all their results are stored
  bool keys_are_fixed = false;  // no kernel of the execution writes keys, values, tables
};

// How far a reference may lie below its row's maximum, as a power of 2: weights stay below 2^8, far
// from the largest f16.
inline constexpr double kSlackLog2 = 8;

// Of the scores: the one that is stated, or the default.
[[nodiscard]] double scale_of(const AttentionSpec& spec);

// `blocks` is how many can be resident. Errors: G060 no kernel for such heads; G041 an address or
// stride that kernels cannot take; G062 too many or too few of something; G063 the scale.
[[nodiscard]] Checked<Ok> check(const AttentionSpec& spec, int blocks);

// Few queries: as many parts as keep so many blocks busy, of 256 keys and more; 1 where the spec is
// none that has parts.
[[nodiscard]] int choose_parts(const AttentionSpec& spec, int blocks);

// The same with the heads that share keys as rows of one, so that these are read once: of one query
// that sees all keys. Else as it is.
[[nodiscard]] AttentionSpec with_groups_as_rows(AttentionSpec spec);

// The best configuration for a spec; of one with parts, for the kernel that makes their states.
// Requires: check(spec, blocks) is ok.
[[nodiscard]] device::AttentionConfig choose_attention(const AttentionSpec& spec);

// All that a launch needs but what is made on a GPU: the maps, encoded, in the order panels'
// queries, then each chunk's keys and values; the ticket; the jobs of blocks that copy.
struct AttentionPlan {
  device::AttentionConfig config;
  device::AttentionArgs args{};
  std::vector<TensorMapSpec> maps;
  int blocks = 0;  // of the grid, copying ones included
};

// What is worked on at a time should stay in a cache of this size.
inline constexpr std::int64_t kAttentionCacheBytes = std::int64_t{32} << 20;

// Of a spec with parts, what makes their states: output and lse of its panel are theirs, dense.
// Requires: check(spec, blocks) is ok, and the configuration is for such heads.
[[nodiscard]] AttentionPlan plan_attention(const AttentionSpec& spec,
                                           const device::AttentionConfig& config, int blocks);

// Where map `index` of a plan goes.
[[nodiscard]] device::TensorMap& map_of(device::AttentionArgs& args, std::size_t index);

// How much a panel's `done` grows in one run.
[[nodiscard]] std::uint32_t arrivals(const AttentionSpec& spec, const AttentionPanelSpec& panel,
                                     const device::AttentionConfig& config);

[[nodiscard]] std::unique_ptr<KernelLaunch> make_launch(AttentionSpec spec);

}  // namespace harpe::cuda
