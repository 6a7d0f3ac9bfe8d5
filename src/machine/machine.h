#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/diag.h"
#include "support/units.h"

namespace harpe {

// What a plan runs on, as data: a `.machine` file (docs/machine.md). Bandwidths are bytes per
// second and direction, rates operations per second. Every line says where its figures come from.

enum class Origin : std::uint8_t { Measured, Published, Assumed };
struct Provenance {
  Origin origin = Origin::Assumed;
  std::string note;  // "copy engines, 8 x H200, 2026-11-21"
  // The shipped machine whose line it is, where a machine `like` that one has not its own.
  std::string of = {};
  friend bool operator==(const Provenance&, const Provenance&) = default;
};

// One rank's processor.
struct Processor {
  std::string name;
  std::int64_t sms = 1;         // units that compute in parallel; kernels may take some of them
  double memory_bytes = 0;      // that a plan may use
  double memory_bandwidth = 0;  // HBM, or a core's share of the host's
  double cache_bytes = 0;       // intermediates up to this size do not reach memory
  Picoseconds kernel_start;     // from a kernel being ready to its first instruction (in a graph)
  Picoseconds kernel_issue;     // of the host, per launch, where launches are not replayed
  Picoseconds event;            // from a task's end to its waiter's start, another queue, same rank
  Picoseconds execution_start = {};  // of a replayed execution, before its first task can begin
  Provenance from;
  friend bool operator==(const Processor&, const Processor&) = default;
};

enum class LevelKind : std::uint8_t {
  Switch,  // every processor has its own port; no contention but at the ports
  Rail,    // processors with the same index within the level below share a network of their own
  Ring,    // neighbours only; distance costs links
  Bus,     // all share one
};

// How processors are connected, innermost first: level l joins `size` groups of level l-1.
struct MachineLevel {
  std::string name;  // "nvlink", "rail"
  LevelKind kind = LevelKind::Switch;
  std::int64_t size = 1;
  double bandwidth = 0;            // of one processor's port, per direction; of a Bus: in all
  Picoseconds latency;             // of one hop, as of a flag written and seen
  double messages_per_second = 0;  // of one processor's NIC; 0: no limit
  Picoseconds proxy_post;          // of the proxy thread, per transfer; 0: no proxy in the way
  Picoseconds proxy_peer;          // the same for each processor beyond its group that is at work
  Picoseconds proxy_fence;         // of the proxy thread, to drain what is outstanding
  Picoseconds proxy_word;          // of the proxy thread, per signal raised behind a put
  Picoseconds proxy_count;         // of the receiver's proxy thread, per put's immediate data
  // Of a signal that the NIC orders, from the last put before it until the signal leaves: behind
  // puts to the same processor, which alone stand back meanwhile; or behind all puts, all standing
  // back.
  Picoseconds nic_fence;
  Picoseconds nic_drain;
  Picoseconds gpu_post;  // of a kernel that posts, per put with its signal; 0: free
  Provenance from;
  friend bool operator==(const MachineLevel&, const MachineLevel&) = default;
};

// How data crosses a level: transfer time = start + bytes / bandwidth, alone.
struct TransportRate {
  std::string via;    // as a schedule names it: ce, sm, tma, nccl, proxy
  std::string level;  // a MachineLevel's name
  Picoseconds start;
  double bandwidth = 0;
  std::int64_t sms = 0;  // that it takes while it runs, on the side that drives it
  // Of collectives, 1: who takes a part rounds it, so that it crosses in the type that it is held
  // in.
  std::int64_t unrounded = 0;
  double converting = 0;  // bandwidth of what reads the other side and changes type; 0: the same
  Provenance from;
  friend bool operator==(const TransportRate&, const TransportRate&) = default;
};

// From a put being on the other side until the proxy that drains it knows: by how many groups of
// the level below are at work, and how many puts are outstanding.
struct CompletionSample {
  std::string level;
  std::int64_t groups = 1;
  std::int64_t outstanding = 1;
  Picoseconds time;
  // Under load: puts of its own size that a put stands behind at its destination, on average.
  // Others use the wire meanwhile, so that it is a drain alone that waits for them.
  double behind = 0;
  Picoseconds nic_drain = {};  // what the NIC's own drain takes beyond its level's
  Provenance from;
  friend bool operator==(const CompletionSample&, const CompletionSample&) = default;
};

// Whose time a sample is.
enum class Supplier : std::uint8_t {
  Any,     // nothing else is known: it stands for the other two
  Own,     // Harpe's kernels; collectives by pulls
  Library  // NVIDIA's: cuBLASLt, cuDNN, NCCL
};

// One point of a collective's curve: `bytes` are what one rank puts in.
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

// What a leaf's time depends on. A product has `batch` problems of rows x columns x depth;
// attention `batch` heads of rows queries, columns keys and head dimension depth. Leaves that only
// touch memory have bytes alone.
struct LeafShape {
  double batch = 1;
  double rows = 1;
  double columns = 1;
  double depth = 1;
  double flops = 0;  // of what is computed: hidden pairs of a mask do not count
  double bytes = 0;  // read and written at least
  friend bool operator==(const LeafShape&, const LeafShape&) = default;
};

// A leaf's rate by shape: the larger of work in whole tiles at `peak` and bytes at the memory's
// bandwidth, plus `start`; samples, where there are any near, correct it (docs/machine.md).
struct LeafRate {
  std::string leaf;   // a leaf contract's name, or "*"
  std::string dtype;  // "bf16", or "*"
  Supplier by = Supplier::Any;
  double peak = 0;  // operations per second with all SMs; 0: memory alone
  double tile_rows = 1;
  double tile_columns = 1;
  // Rows of what one SM works on until its last column or depth is there; 0: a tile's.
  double held_rows = 0;
  // Up to so many rows of one problem another kernel streams the columns, whatever the tiles; 0:
  // there is none.
  double few_rows = 0;
  double half_depth = 0;    // depth at which a tile reaches half its rate
  double memory_share = 1;  // of the memory bandwidth that it reaches
  Picoseconds start;
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

// How far predicted times of plans of one operator are from measured ones: |predicted / measured -
// 1|.
struct PredictionError {
  std::string family;  // the operator
  std::int64_t plans = 0;
  double median = 0;
  double nine_of_ten = 0;  // that nine of ten plans do not exceed
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
// Figures in range, names known, levels there, a rate for some leaf, and nothing that no plan on
// the machine can use. Errors: M110, M112 to M115, M122.
[[nodiscard]] Checked<Ok> check_machine(const Machine& machine);

// Null where no plan of the operator was measured.
[[nodiscard]] const PredictionError* find_error(const Machine& machine, std::string_view family);

// What is not of the machine itself but of one that it is like: "processor h200, all at nvlink,
// nccl at rail, rates, samples of h200x8x2". Empty of shipped machines and of whole ones.
[[nodiscard]] std::string list_inherited(const Machine& machine);

// 128 bits over the canonical text without provenance and errors, as hexadecimal: keys of plan
// caches.
[[nodiscard]] std::string fingerprint(const Machine& machine);

// The shipped machines.
struct MachinePreset {
  std::string_view name;
  std::string_view text;
};
[[nodiscard]] std::span<const MachinePreset> all_machine_presets();
[[nodiscard]] const MachinePreset* find_machine_preset(std::string_view name);

}  // namespace harpe
