#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/form.h"
#include "ir/program.h"
#include "machine/mesh.h"
#include "support/ids.h"

namespace harpe {

// The Plan: everything that an executor, the simulator and the verifier need, so that they guess
// nothing (commir.md section 7, decisions D11, D14-D19). It contains program, mesh and normal form,
// which define digits, blocks and homes (ir/blocks.h) and the slots' shapes (plan/slots.h).

constexpr std::int64_t kPlanVersion = 1;

// Digit values [lo, hi).
struct Range {
  std::int32_t lo = 0;
  std::int32_t hi = 1;
  friend bool operator==(const Range&, const Range&) = default;
};
// A set of blocks: one range per digit of a buffer, or of an iteration space.
using Box = std::vector<Range>;

enum class Level : std::uint8_t {
  Home,   // the buffer's own memory, owned by the caller between executions
  Stage,  // a staged copy
  Acc,    // partial states a nest accumulates into
  Inbox,  // contributions received from one peer
  Drain,  // partial states between two drains of a chain
  Sum,    // partial states at the final owner, before the one rounding into the home
  Pack,   // contiguous image of a strided region, for a transport that needs one
};

// One slot of one rank's arena, or one home. It `holds` some digits whole, and one value at a time
// of the others. A block names those values, so the address of a block in a slot follows from
// (alloc, block) alone. Slots with equal names have equal offset and bytes on all ranks (D15).
struct Alloc {
  RankId rank;
  std::string name;  // "mm.A.st0.1", "C.home"
  std::string buffer;
  Level level = Level::Home;
  DType dtype = DType::F32;
  std::vector<bool> holds;  // per digit of the buffer: whole (true) or one value at a time
  std::int64_t offset = 0;  // in the rank's arena, bytes
  std::int64_t bytes = 0;   // of the largest region it holds on any rank
  friend bool operator==(const Alloc&, const Alloc&) = default;
};

// A FIFO of tasks on one rank.
enum class QueueKind : std::uint8_t { Host, Sm, Ce, Tma, Nccl, Proxy, Ibgda, Multimem };
struct Queue {
  RankId rank;
  QueueKind kind = QueueKind::Host;
  friend bool operator==(const Queue&, const Queue&) = default;
};

enum class TaskKind : std::uint8_t {
  Entry,     // the rank's allocations now belong to this execution; `in` homes hold the inputs
  Exit,      // every task that accesses the rank's allocations is over
  Init,      // writes the finalised identity of the statement's monoid: 0, and -inf for a logsumexp
  Compute,   // one leaf over `iter`; writes Init or Add partial states (Set under Store)
  Copy,      // reads[i] -> writes[i], same blocks; converts to the destination's dtype
  Pack,      // a Copy within a rank, strided region -> contiguous image
  Unpack,    // a Copy within a rank, contiguous image -> strided region
  Fold,      // combines sources in order into partial states (writes Init or Add)
  Finalise,  // combines sources in order and rounds once into the home (writes Set)
  Collective,  // this rank's part of a group operation; see CollectiveOp
};

enum class CollectiveOp : std::uint8_t {
  AllGather,      // reads[i] -> writes[i]: pulls every member's part, including its own
  AllToAll,       // the same, with parts that differ by destination
  ReduceScatter,  // sources in ascending rank, combined into writes[0] (Init)
};

enum class WriteMode : std::uint8_t {
  Read,
  Init,  // the first contribution: overwrites
  Add,   // a further contribution, combined by the statement's monoid
  Set,   // a plain value
};

// A routed transfer cut by a digit that the moved buffer lacks: of each block, the slot holds only
// what the iterations with this digit value need (commir.md 4.5, 8).
struct RouteChoice {
  std::string digit;
  std::int32_t value = 0;
  friend bool operator==(const RouteChoice&, const RouteChoice&) = default;
};

// Blocks of one allocation and the access to them.
struct Ref {
  AllocId alloc;
  WriteMode mode = WriteMode::Read;
  std::vector<Box> boxes;           // disjoint
  std::optional<RouteChoice> when;  // of an operand, or of what a copy transfers
  friend bool operator==(const Ref&, const Ref&) = default;
};

// Tasks of a queue run one after the other, in the order of their ids. A statement's targets under
// `lse` are one state: Fold, Finalise, Init and Acc refs come in groups of one ref per target, in
// target order. For Fold and Finalise `reads` is source-major: source 0's targets, source 1's
// targets, ….
struct Task {
  QueueId queue;
  TaskKind kind = TaskKind::Entry;
  std::string nest;       // Init, Compute, Fold, Finalise, ReduceScatter: the statement
  int stmt = 0;           // index in the nest
  std::vector<Box> iter;  // Compute: over the digits of the nest's `over` axes, in that order
  std::vector<Ref> reads;
  std::vector<Ref> writes;
  CollectiveOp collective = CollectiveOp::AllGather;
  std::int32_t group = -1;  // Collective: members of one operation share it
  // Compute: tasks of one queue with equal kernel are one launch (fuse, chunk).
  std::int32_t kernel = -1;
  std::string leaf_kernel;  // Compute: the kernel that `patch` chose; "" is the executor's default
  How how = How::Bulk;      // Copy, Collective: the move it belongs to
  Via via = Via::Sm;        // Copy, Collective: transport
  // ReduceScatter: the type that other ranks' contributions are rounded to on the way; none: not
  // rounded.
  std::optional<DType> wire;
  std::int64_t bytes = 0;  // Copy, Collective: bytes that arrive from other ranks
  friend bool operator==(const Task&, const Task&) = default;
};

// `from` completes before `to` starts. Within a rank: an event. Across ranks: a signal on the
// waiting rank (D18), raised with release and awaited with acquire, compared with >= against the
// execution's epoch.
enum class SyncKind : std::uint8_t { Event, Flag, Counter };
struct Sync {
  TaskId from;
  TaskId to;
  SyncKind kind = SyncKind::Event;
  std::int32_t flag = -1;  // index in the waiting rank's flag page
  // For a signal raised behind a put (is_put): the puts that it is ordered after (commir.md 7.3).
  // None: it is ordered after no put.
  std::optional<Fence> fence = std::nullopt;
  friend bool operator==(const Sync&, const Sync&) = default;
};

// Every `from` completes before any `to` starts: many edges replaced by one counter (commir.md 7.2,
// step 10).
struct Barrier {
  std::vector<TaskId> from;
  std::vector<TaskId> to;
  std::int32_t flag = -1;  // index in the waiting ranks' flag pages
  friend bool operator==(const Barrier&, const Barrier&) = default;
};

struct Plan {
  Program program;  // ground
  Mesh mesh;        // as the caller named it; the form's refinements are not applied
  NormalForm form;
  std::vector<Alloc> allocs;
  std::vector<Queue> queues;
  std::vector<Task> tasks;
  std::vector<Sync> syncs;
  std::vector<Barrier> barriers;
  friend bool operator==(const Plan&, const Plan&) = default;
};

[[nodiscard]] std::string_view print(Level level);
[[nodiscard]] std::string_view print(QueueKind kind);
[[nodiscard]] std::string_view print(TaskKind kind);
[[nodiscard]] std::string_view print(CollectiveOp op);
[[nodiscard]] std::string_view print(WriteMode mode);  // "r", "init", "add", "set"
[[nodiscard]] std::string_view print(SyncKind kind);

// Whether the task is a transfer handed to a NIC. The next task of its queue starts when the put is
// posted, before it has arrived, and a signal raised behind it may overtake it. An event or a
// barrier waits until the queue's puts have arrived; other signals are ordered by their fence.
[[nodiscard]] bool is_put(const Plan& plan, const Task& task);
// The destination rank. Requires: is_put and a write.
[[nodiscard]] RankId destination_of(const Plan& plan, const Task& task);

// Bytes of one rank's arena: the largest end of an allocation. Equal on all ranks.
[[nodiscard]] std::int64_t arena_bytes(const Plan& plan);

}  // namespace harpe
