#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "ir/form.h"
#include "machine/machine.h"
#include "sim/cost.h"
#include "sim/workload.h"
#include "support/ids.h"

namespace harpe {

// The role of an activity for its task.
enum class ActivityRole : std::uint8_t {
  Work,    // the task itself; its end is the task's
  Issue,   // the host thread launches it
  Post,    // the proxy thread, or a kernel, hands a put to the NIC, which does the Work
  Fence,   // the proxy thread waits for quiet before it raises signals
  Signal,  // the proxy thread raises a signal behind a put
  Order,   // the NIC holds signals back until the puts before them are over
  Count,   // the receiver's proxy thread counts a put's immediate data
  Arrive,  // a member of a collective has arrived
  Join,    // several activities are over: a barrier's signals, a queue's puts
};

// The workload to which the activities of puts are added.
struct PutWriter {
  // Returns the activity's index. `put` is the PutOrder::put that it belongs to.
  std::function<std::int32_t(Activity, std::int32_t queue, ActivityRole, std::int32_t put)> add;
  std::function<void(std::int32_t before, std::int32_t after, Picoseconds delay)> depend;
};

// One put of a queue.
struct PutOrder {
  std::int32_t put = 0;  // the caller's number
  RankId to;
  int level = 0;               // the level that it crosses
  Activity flight;             // its transfer
  std::optional<Fence> fence;  // of its signals; none: it has no signals
  bool waits = false;          // for other queues
};

// The puts of one rank's queue as activities: posts, quiets and signals in the queue; transfers and
// the NIC's work beside it, as the fences of the signals require (docs/simulator.md). Plans
// (sim/build.h) and exchanges without a plan (sim/exchange.h) use the same model.
class PutQueue {
 public:
  enum class Poster : std::uint8_t { Proxy, Kernel };
  struct Options {
    RankId rank;
    std::int32_t queue = 0;
    Poster poster = Poster::Proxy;
    bool posts = true;   // posting takes time
    bool fences = true;  // signals wait for their fence, not only for their own put
    // The caller defines the batches: only end_batch ends one, and puts need not be in a row.
    bool counted = false;
  };
  // Requires: the machine and the map outlive this.
  PutQueue(const Machine& machine, const ResourceMap& map, Options options)
      : machine_(machine), map_(map), options_(options) {}

  struct Posted {
    std::int32_t post = -1;
    std::int32_t flight = -1;
  };
  Posted post(const PutOrder& order, const PutWriter& writer);
  // Raises the signals of all open batches. Call it after the last put, and wherever batches must
  // end.
  void end_batches(const PutWriter& writer);
  // Ends the batch to one rank; with OneQuiet a batch has no single rank.
  void end_batch(RankId to, const PutWriter& writer);

  // The activity whose end raises the put's signal. Requires: its batch has ended.
  [[nodiscard]] std::int32_t signal_of(std::int32_t put) const;
  // The activity whose end means that the put and all earlier puts have arrived, and the queue has
  // detected it.
  [[nodiscard]] std::int32_t completed(std::int32_t put, const PutWriter& writer);

 private:
  struct Pending {
    std::int32_t put = 0;
    std::int32_t post = -1;
    std::int32_t flight = -1;
    RankId to;
    int level = 0;
    Picoseconds alone;  // its flight without other traffic
  };

  using Batch = std::vector<Pending>;

  [[nodiscard]] Fence fence_of(const PutOrder& order) const;
  [[nodiscard]] RankId batch_of(const PutOrder& order) const;
  [[nodiscard]] bool joins(const PutOrder& order) const;
  [[nodiscard]] Activity posting(int level) const;
  std::int32_t fly(const PutOrder& order, std::int32_t post, const PutWriter& writer);
  void raise_signals(const Batch& batch, const PutWriter& writer);
  void quiet(const Batch& batch, const PutWriter& writer);
  void order_by_nic(const Batch& batch, const PutWriter& writer);
  [[nodiscard]] std::int32_t raise(const Pending& put, const PutWriter& writer);
  std::int32_t hold_back(const Pending& last, const PutWriter& writer);
  void count(const Pending& put, const PutWriter& writer);

  const Machine& machine_;
  const ResourceMap& map_;
  Options options_;
  std::map<RankId, Batch> open_;  // batches with pending signals; OneQuiet's under no rank
  Fence policy_ = Fence::PerPut;  // the fence of the open batches
  std::vector<Pending> all_;
  std::map<std::int32_t, std::size_t> at_;       // by put, in all_
  std::map<std::int32_t, std::int32_t> signal_;  // by put: what its signals wait for
  std::map<std::size_t, std::int32_t> joins_;    // by index in all_: all puts up to it are over
  std::map<RankId, std::int32_t> last_to_;       // last flights, by destination, in order
  std::map<RankId, std::int32_t> held_to_;       // by destination: what later puts wait for
  std::int32_t held_ = -1;                       // what all later puts wait for
  std::size_t unheld_ = 0;                       // index in all_: puts since then
};

}  // namespace harpe
