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

// A launch plan: which kernels do a plan's tasks on one target, in which order, where they read and
// store, what they wait for and what they signal. It names tasks, allocations and elements, never
// addresses. print_launches (plan/launch_text.h) gives its text.

using LaunchId = Id<struct LaunchTag>;  // index into LaunchPlan::launches
using SignalId = Id<struct SignalTag>;  // index into LaunchPlan::signals

enum class SignalKind : std::uint8_t {
  Sync,       // a flag: the sync's `from` is over; or a counter of the chunks that were copied
  Barrier,    // a counter of the barrier's `from` tasks
  Arrival,    // a counter: members of a collective whose parts are ready
  Pulled,     // a counter: members of a collective that have taken what they need
  Credit,     // a flag: rank `index` was done with the execution before
  Arrived,    // a flag: put `index` lies in this rank's landing memory
  Taken,      // a flag: put `index` was taken from there
  RingSpace,  // no flag: names a wait for free entries in the ring to rank `index`
};

// One cell in the page of the rank that waits. It only grows, from execution to execution: a flag
// is set to the execution's number, a counter grows by `arrivals` in each.
struct Signal {
  RankId rank;  // in whose page
  SignalKind kind = SignalKind::Sync;
  std::int32_t index = 0;  // of the sync, barrier, collective's group, rank or put
  std::int32_t arrivals = 1;
  std::vector<TaskId> from;  // what is over once it is there; a Credit's is of the execution before
  bool is_posted = false;    // raised by another host's proxy
  // No word: elements that a fused store stores say themselves that they are there, to the one
  // addend that reads them, and nothing else is known to be over. Each is read once an execution.
  bool is_in_data = false;
  friend bool operator==(const Signal&, const Signal&) = default;
};

struct Raise {
  SignalId signal;
  std::uint32_t adds = 0;  // what a counter grows by; 0: a flag
  friend bool operator==(const Raise&, const Raise&) = default;
};

// A rectangle of a buffer where an allocation holds it: elements along every axis of the buffer, in
// their logical positions, the flattened axes first and then the opaque dimensions.
struct Place {
  AllocId alloc;  // the plan's, then LaunchPlan::boxes
  std::vector<Interval> span;
  friend bool operator==(const Place&, const Place&) = default;
};

// Operands of a kernel that arrive together: a K chunk of A and the rows of B that it meets, or
// keys with their values.
struct Arrival {
  std::vector<Place> reads;
  std::optional<SignalId> when;  // the kernel waits for it inside; none: it is there before
  friend bool operator==(const Arrival&, const Arrival&) = default;
};

// A contribution that the kernel adds to its own sum before it rounds and stores a panel.
struct Addend {
  std::vector<Place> reads;  // a place for each result of the kernel's statement
  std::optional<SignalId> when;
  friend bool operator==(const Addend&, const Addend&) = default;
};

// A pointwise statement of the program, which the kernel applies to the panel that it has made. The
// panel is the operand that the kernel's own statement, or the map before, makes.
struct Map {
  std::string nest;
  std::int32_t stmt = 0;          // in the nest
  std::vector<Place> reads = {};  // its other operands, there before the kernel begins
  friend bool operator==(const Map&, const Map&) = default;
};

// Rows of a result that a kernel makes and stores together.
struct Panel {
  std::vector<Place> reads = {};  // queries, and the state (o and lse) that they carry on from
  std::vector<std::int32_t> meets = {};          // arrivals, in the order of use
  std::vector<Addend> addends = {};              // behind the kernel's own sum, in this order
  std::vector<Map> maps = {};                    // behind the addends, in this order
  std::vector<Place> stores = {};                // C, or what maps make of it; or o and lse
  DType dtype = DType::F32;                      // that C or o is stored in
  bool adds = false;                             // to what is there
  std::optional<std::int32_t> fused_store = {};  // index into Kernel::fused_stores
  friend bool operator==(const Panel&, const Panel&) = default;
};

// What thread blocks copy at a time: a fused copy's signal grows by one for each, the last
// included.
constexpr std::int64_t kCopyChunkBytes = 32 * 1024;

// A copy of a rank's input to another rank, by thread blocks of a kernel that does other work.
struct FusedCopy {
  Place from;
  Place to;
  std::optional<SignalId> raises;  // by one for every chunk of kCopyChunkBytes
  friend bool operator==(const FusedCopy&, const FusedCopy&) = default;
};

// One kernel, copy or library call. Kernels that no task shares with another have no panels.
struct Kernel {
  std::string name;     // "gemm_sm90", "copy_engine", "nccl"
  std::string variant;  // what was chosen for it: tile, cuts along K; "" where there is no choice
  std::int32_t joins = 1;  // without panels: how many kernels of its tasks alone it replaces
  std::vector<Arrival> arrivals;
  std::vector<Panel> panels;        // in the order in which thread blocks take them
  std::vector<Raise> fused_stores;  // each raised once all panels that name it are stored
  std::vector<FusedCopy> fused_copies;
  std::int32_t copy_blocks = 0;  // thread blocks that make them
  friend bool operator==(const Kernel&, const Kernel&) = default;
};

// Which boundaries of its rank's execution a kernel stands for. Begin: it raises the Entry's
// signals, and waits before it stores for what the Entry and its launch await. Both: behind its
// last store it also ends the epoch and raises the Exit's signals.
enum class Bounds : std::uint8_t { None, Begin, Both };

// Kernels of one queue, one behind the other, with what they wait for and what they raise.
struct Launch {
  RankId rank;
  QueueId queue;
  std::vector<TaskId> does = {};  // over when the launch is
  bool lands = false;             // its task is a put of another rank's, which this rank takes in
  bool is_skipped = false;        // nothing reads any more what its task would copy
  std::vector<Kernel> kernels = {};
  std::vector<LaunchId> after = {};   // launches of other queues that are over before it begins
  std::vector<LaunchId> begun = {};   // launches of other queues whose own waits are over before
  std::vector<SignalId> awaits = {};  // before the first kernel
  // Of a collective: raised before its kernels, awaited before them, raised and awaited behind.
  std::vector<Raise> ready = {};
  std::optional<SignalId> all_ready = {};
  std::vector<Raise> pulled = {};
  std::optional<SignalId> all_pulled = {};
  std::vector<Raise> raises = {};  // once it is over
  bool raised_by_engine = false;   // else by a kernel of one warp
  std::int32_t reserved_sms = 0;   // left free for kernels that must run beside it
  bool begins_epoch = false;       // the Entry of its rank
  Bounds bounds = Bounds::None;    // what its kernel does of the Entry and the Exit of its rank
  friend bool operator==(const Launch&, const Launch&) = default;
};

struct LaunchPlan {
  std::string target;        // "h200 sms 132"
  std::vector<Alloc> boxes;  // what NCCL's sums go through; ids behind the plan's allocations
  std::vector<AllocId> partials16;  // partial states of f32 that are left in 16 bits
  std::vector<Signal> signals;      // rank by rank, in the order of the pages
  std::vector<Launch> launches;     // rank by rank, in the order in which a rank issues them
  friend bool operator==(const LaunchPlan&, const LaunchPlan&) = default;
};

}  // namespace harpe::launch
