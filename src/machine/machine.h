#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/diag.h"
#include "support/units.h"

namespace harpe {

// The hardware that a plan runs on, as data: a `.machine` file (docs/machine.md). Bandwidths are
// bytes per second and direction, rates are operations per second. Every line names the source of
// its figures.

enum class Origin : std::uint8_t { Measured, Published, Assumed };
struct Provenance {
  Origin origin = Origin::Assumed;
  std::string note;  // "copy engines, 8 x H200, 2026-11-21"
  // The shipped machine that the line is from, if a machine `like` that one has no line of its own.
  std::string of = {};
  friend bool operator==(const Provenance&, const Provenance&) = default;
};

// One rank's processor.
struct Processor {
  std::string name;
  std::int64_t sms = 1;         // units that compute in parallel; a transport may use some
  double memory_bytes = 0;      // bytes that a plan may use
  double memory_bandwidth = 0;  // HBM, or a core's share of the host's
  double cache_bytes = 0;       // intermediates up to this size do not reach memory
  Picoseconds kernel_start;     // in a graph: from a kernel being ready to its first instruction
  Picoseconds kernel_issue;     // host time per launch, where launches are not replayed
  Picoseconds event;            // from a task's end to its waiter's start, another queue, same rank
  Picoseconds execution_start = {};  // before the first task of a replayed execution can begin
  Provenance from;
  friend bool operator==(const Processor&, const Processor&) = default;
};

enum class LevelKind : std::uint8_t {
  Switch,  // every processor has its own port; contention only at ports
  Rail,    // processors with the same index within the level below share a network of their own
  Ring,    // neighbours only; distance costs links
  Bus,     // all processors share one bus
};

// How processors are connected, innermost first: level l joins `size` groups of level l-1.
struct MachineLevel {
  std::string name;  // "nvlink", "rail"
  LevelKind kind = LevelKind::Switch;
  std::int64_t size = 1;
  double bandwidth = 0;            // of one processor's port, per direction; of a Bus, in total
  Picoseconds latency;             // of one hop: from the write of a flag until it is seen
  double messages_per_second = 0;  // of one processor's NIC; 0: no limit
  Picoseconds proxy_post;          // proxy time per transfer; 0: no proxy is involved
  Picoseconds proxy_peer;          // the same for each active processor in other groups
  Picoseconds proxy_fence;         // proxy time of a quiet over what is outstanding
  Picoseconds proxy_word;          // proxy time per signal raised behind a put
  Picoseconds proxy_count;         // time of the receiver's proxy per put's immediate data
  // For a signal that the NIC orders: from the last earlier put until the signal leaves. With
  // nic_fence the signal follows puts to the same processor, and only later puts to that processor
  // wait. With nic_drain it follows all puts, and all later puts wait.
  Picoseconds nic_fence;
  Picoseconds nic_drain;
  Picoseconds gpu_post;  // time of a posting kernel, per put with its signal; 0: free
  Provenance from;
  friend bool operator==(const MachineLevel&, const MachineLevel&) = default;
};

// How data crosses a level. Alone, a transfer takes start + bytes / bandwidth.
struct TransportRate {
  std::string via;    // as a schedule names it: ce, sm, tma, nccl, proxy
  std::string level;  // a MachineLevel's name
  Picoseconds start;
  double bandwidth = 0;
  std::int64_t sms = 0;  // SMs that it uses on the side that drives it
  // For collectives, 1: the receiver of a part rounds it, so that it crosses in the type of the
  // source.
  std::int64_t unrounded = 0;
  double converting = 0;  // bandwidth of a read that changes the type; 0: the same
  Provenance from;
  friend bool operator==(const TransportRate&, const TransportRate&) = default;
};

// The time from the arrival of a put until the proxy that waits for quiet detects it: by the number
// of active groups of the level below, and by the number of outstanding puts.
struct CompletionSample {
  std::string level;
  std::int64_t groups = 1;
  std::int64_t outstanding = 1;
  Picoseconds time;
  // Under load: how many puts of its own size a put queues behind at its destination, on average.
  // Other traffic uses the wire meanwhile, so only a quiet waits for them.
  double behind = 0;
  Picoseconds nic_drain = {};  // the NIC's own drain time beyond its level's nic_drain
  Provenance from;
  friend bool operator==(const CompletionSample&, const CompletionSample&) = default;
};

// Whose implementation a sample measures.
enum class Supplier : std::uint8_t {
  Any,     // not known: it is used for the other two
  Own,     // Harpe's kernels; collectives by pulls
  Library  // NVIDIA's: cuBLASLt, cuDNN, NCCL
};

// One point of a collective's curve. `bytes` are what one rank contributes.
enum class CollectiveKind : std::uint8_t {
  AllGather,
  ReduceScatter,
  AllReduce,
  AllToAll,
  SendRecv
};
struct CollectiveSample {
  CollectiveKind kind = CollectiveKind::AllGather;
  std::string level;
  Supplier by = Supplier::Any;
  std::int64_t ranks = 1;
  double bytes = 0;
  Picoseconds time;
  Provenance from;
  friend bool operator==(const CollectiveSample&, const CollectiveSample&) = default;
};

// What a leaf's time depends on. A GEMM has `batch` problems of rows x columns x depth. Attention
// has `batch` heads, with rows as queries, columns as keys, and depth as the head dimension. Leaves
// that only touch memory have only bytes.
struct LeafShape {
  double batch = 1;
  double rows = 1;
  double columns = 1;
  double depth = 1;
  double flops = 0;  // operations computed; masked pairs do not count
  double bytes = 0;  // least bytes read and written
  friend bool operator==(const LeafShape&, const LeafShape&) = default;
};

// A leaf's rate by shape: the larger of its work in whole tiles at `peak` and its bytes at the
// memory's bandwidth, plus `start`. Nearby samples correct it (docs/machine.md).
struct LeafRate {
  std::string leaf;   // a leaf contract's name, or "*"
  std::string dtype;  // "bf16", or "*"
  Supplier by = Supplier::Any;
  double peak = 0;  // operations per second with all SMs; 0: limited by memory only
  double tile_rows = 1;
  double tile_columns = 1;
  // Rows that one SM works on until their last column or depth has arrived; 0: those of a tile.
  double held_rows = 0;
  // Up to this many rows of one problem, or of each problem if columns are a loop, another kernel
  // streams the columns, whatever the tiles; 0: there is no such kernel.
  double few_rows = 0;
  double half_depth = 0;    // depth at which a tile reaches half its rate
  double memory_share = 1;  // share of the memory bandwidth that it reaches
  Picoseconds start;
  Picoseconds few_start;  // of the kernel for few rows; 0: `start`
  Provenance from;
  friend bool operator==(const LeafRate&, const LeafRate&) = default;
};
struct LeafSample {
  std::string leaf;
  std::string dtype;
  LeafShape shape;
  bool causal = false;
  Supplier by = Supplier::Any;
  Picoseconds time;
  Provenance from;
  friend bool operator==(const LeafSample&, const LeafSample&) = default;
};

// The error of predicted times of one operator's plans: |predicted / measured - 1|.
struct PredictionError {
  std::string family;  // the operator
  std::int64_t plans = 0;
  double median = 0;
  double nine_of_ten = 0;  // not exceeded by nine of ten plans
  Provenance from;
  friend bool operator==(const PredictionError&, const PredictionError&) = default;
};

struct Machine {
  std::string name;
  std::string summary;
  Processor processor;
  std::vector<MachineLevel> levels;
  std::vector<TransportRate> transports;
  std::vector<CompletionSample> completions;
  std::vector<CollectiveSample> collectives;
  std::vector<LeafRate> rates;
  std::vector<LeafSample> samples;
  std::vector<PredictionError> errors;
  friend bool operator==(const Machine&, const Machine&) = default;

  [[nodiscard]] std::int64_t processors() const;  // product of the levels' sizes
};

[[nodiscard]] std::string_view print(Origin origin);
[[nodiscard]] std::string_view print(LevelKind kind);
[[nodiscard]] std::string_view print(CollectiveKind kind);  // "all_gather"
[[nodiscard]] std::string_view print(Supplier by);          // "library"

// `machine NAME { … }`. parse_machine(print(m)) == m. Errors: T0xx; M110 to M116.
[[nodiscard]] std::string print(const Machine& machine);
[[nodiscard]] Checked<Machine> parse_machine(std::string_view text, const std::string& file);
// Checks that figures are in range, names and levels known, some leaf has a rate, and every line
// can matter for some plan. Errors: M110, M112 to M115, M122.
[[nodiscard]] Checked<Ok> check_machine(const Machine& machine);

// Null where no plan of the operator was measured.
[[nodiscard]] const PredictionError* find_error(const Machine& machine, std::string_view family);

// Lists the lines that a machine inherits from the one that it is like: "processor h200, all at
// nvlink, nccl at rail, rates, samples of h200x8x2". Empty for shipped machines, and for machines
// with all lines of their own.
[[nodiscard]] std::string list_inherited(const Machine& machine);

// 128 bits over the canonical text without provenance and errors, in hexadecimal. Plan caches use
// it as a key.
[[nodiscard]] std::string fingerprint(const Machine& machine);

// The shipped machines.
struct MachinePreset {
  std::string_view name;
  std::string_view text;
};
[[nodiscard]] std::span<const MachinePreset> all_machine_presets();
[[nodiscard]] const MachinePreset* find_machine_preset(std::string_view name);

}  // namespace harpe
