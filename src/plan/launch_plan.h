#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/blocks.h"
#include "plan/plan.h"
#include "support/ids.h"

namespace harpe::launch {

// A launch plan: the kernels that do a plan's tasks on one target, their order, where they read and
// store, what they wait for and what they signal. It names tasks, allocations and elements, never
// addresses. print_launches (plan/launch_text.h) prints it.

using LaunchId = Id<struct LaunchTag>;  // index into LaunchPlan::launches
using SignalId = Id<struct SignalTag>;  // index into LaunchPlan::signals

enum class SignalKind : std::uint8_t {
  Sync,       // a flag: the sync's `from` is over; or a counter of the chunks copied
  Barrier,    // a counter of the barrier's `from` tasks
  Arrival,    // a counter: members of a collective whose parts are ready
  Pulled,     // a counter: members of a collective that have read all they need
  Credit,     // a flag: rank `index` has ended the previous execution
  Arrived,    // a flag: put `index` has arrived in this rank's landing memory
  Taken,      // a flag: put `index` was copied out of there
  RingSpace,  // no flag: names a wait for free entries in the ring to rank `index`
};

// One memory cell in the page of the rank that waits. Its value only grows: a flag is set to the
// execution's number, a counter grows by `arrivals` in each execution.
struct Signal {
  RankId rank;  // the rank whose page has the cell
  SignalKind kind = SignalKind::Sync;
  std::int32_t index = 0;  // of the sync, barrier, collective's group, rank or put
  std::int32_t arrivals = 1;
  // The tasks that it reports as over; for a Credit, in the previous execution.
  std::vector<TaskId> from;
  bool is_posted = false;  // raised by another host's proxy
  // The signal has no memory cell. Each element that a fused store writes shows by its value that
  // it is there, to the one addend that reads it; nothing else is known to be over. Each element is
  // read once per execution.
  bool is_in_data = false;
  friend bool operator==(const Signal&, const Signal&) = default;
};

struct Raise {
  SignalId signal;
  std::uint32_t adds = 0;  // the increment of a counter; 0: a flag
  friend bool operator==(const Raise&, const Raise&) = default;
};

// A rectangle of a buffer in an allocation: elements along every axis of the buffer, in logical
// positions, first the flattened axes, then the opaque dimensions.
struct Place {
  AllocId alloc;  // one of the plan's, or of LaunchPlan::boxes
  std::vector<Interval> span;
  friend bool operator==(const Place&, const Place&) = default;
};

// Operands that a kernel uses together: a K chunk of A and the rows of B that it multiplies, or
// keys with their values.
struct Arrival {
  std::vector<Place> reads;
  std::optional<SignalId> when;  // the kernel waits for it inside; none: there before the kernel
  friend bool operator==(const Arrival&, const Arrival&) = default;
};

// A contribution that the kernel adds to its own sum before it rounds and stores a panel.
struct Addend {
  std::vector<Place> reads;  // one place per result of the kernel's statement
  std::optional<SignalId> when;
  friend bool operator==(const Addend&, const Addend&) = default;
};

// A pointwise statement of the program that the kernel applies to its panel. The panel is the
// operand that the kernel's own statement, or the previous map, produces.
struct Map {
  std::string nest;
  std::int32_t stmt = 0;          // in the nest
  std::vector<Place> reads = {};  // the other operands, there before the kernel begins
  friend bool operator==(const Map&, const Map&) = default;
};

// Rows of a result that a kernel computes and stores together.
struct Panel {
  // Queries, and the state (o and lse) that the panel continues from.
  std::vector<Place> reads = {};
  std::vector<std::int32_t> meets = {};          // arrivals, in the order of use
  std::vector<Addend> addends = {};              // added after the kernel's own sum, in this order
  std::vector<Map> maps = {};                    // applied after the addends, in this order
  std::vector<Place> stores = {};                // C, or the maps' result; or o and lse
  DType dtype = DType::F32;                      // of the stored C or o
  bool adds = false;                             // adds to the stored value
  std::optional<std::int32_t> fused_store = {};  // index into Kernel::fused_stores
  friend bool operator==(const Panel&, const Panel&) = default;
};

// The chunk that thread blocks copy at a time. A fused copy's signal grows by one per chunk,
// including the last, shorter one.
constexpr std::int64_t kCopyChunkBytes = 32 * 1024;

// A copy of a rank's input to another rank by thread blocks of a kernel that does other work.
struct FusedCopy {
  Place from;
  Place to;
  std::optional<SignalId> raises;  // by one for every chunk of kCopyChunkBytes
  friend bool operator==(const FusedCopy&, const FusedCopy&) = default;
};

// One kernel, copy or library call. A kernel that does its tasks whole has no panels.
struct Kernel {
  std::string name;        // "gemm_sm90", "copy_engine", "nccl"
  std::string variant;     // its variant: tile, cuts along K; "" if there is only one
  std::int32_t joins = 1;  // without panels: the number of single-task kernels that it replaces
  std::vector<Arrival> arrivals;
  std::vector<Panel> panels;        // in the order in which thread blocks take them
  std::vector<Raise> fused_stores;  // each raised once all panels that name it are stored
  std::vector<FusedCopy> fused_copies;
  std::int32_t copy_blocks = 0;  // number of thread blocks for fused copies
  friend bool operator==(const Kernel&, const Kernel&) = default;
};

// Consecutive kernels of one queue, with the signals that they await and raise.
struct Launch {
  RankId rank;
  QueueId queue;
  std::vector<TaskId> does = {};  // tasks that are over when the launch is
  bool lands = false;             // its task is another rank's put, which this rank receives
  bool is_skipped = false;        // no task reads what its task would copy
  std::vector<Kernel> kernels = {};
  std::vector<LaunchId> after = {};  // launches of other queues that are over before it begins
  // Launches of other queues whose waits are over before it begins.
  std::vector<LaunchId> begun = {};
  std::vector<SignalId> awaits = {};  // before the first kernel
  // For a collective: raised before its kernels, awaited before them, raised and awaited after
  // them.
  std::vector<Raise> ready = {};
  std::optional<SignalId> all_ready = {};
  std::vector<Raise> pulled = {};
  std::optional<SignalId> all_pulled = {};
  std::vector<Raise> raises = {};  // raised once it is over
  bool raised_by_engine = false;   // by the copy engine; otherwise by a one-warp kernel
  std::int32_t reserved_sms = 0;   // SMs left free for kernels that must run beside it
  bool begins_epoch = false;       // it is the Entry of its rank
  // Its kernel stands for the boundaries of its rank: it raises the Entry's signals, waits before
  // its first store for what the Entry and this launch await, and after its last store for what the
  // Exit awaits, ends the epoch and raises the Exit's signals.
  bool bounds_epoch = false;
  friend bool operator==(const Launch&, const Launch&) = default;
};

struct LaunchPlan {
  std::string target;               // "h200 sms 132"
  std::vector<Alloc> boxes;         // memory for NCCL's sums; ids follow the plan's allocations
  std::vector<AllocId> partials16;  // partial states of f32 that are stored in 16 bits
  std::vector<Signal> signals;      // rank by rank, in page order
  std::vector<Launch> launches;     // rank by rank, in the order in which the rank issues them
  friend bool operator==(const LaunchPlan&, const LaunchPlan&) = default;
};

}  // namespace harpe::launch
