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

// What an activity is to the task it belongs to.
enum class ActivityRole : std::uint8_t {
  Work,    // the task itself; its end is the task's
  Issue,   // the host thread launches it
  Post,    // the proxy thread, or a kernel, hands a put to the NIC, which does the Work
  Fence,   // the proxy thread drains puts before it raises signals behind them
  Signal,  // the proxy thread raises a signal behind a put
  Order,   // the NIC holds signals back until the puts before them are over
  Count,   // the receiver's proxy thread counts a put's immediate data
  Arrive,  // a collective's member is there
  Join,    // several things are over: a barrier's signals, a queue's puts
};

// Where the activities of puts go.
struct PutWriter {
  // Gives its index. `put` says whose it is, as its order did.
  std::function<std::int32_t(Activity, std::int32_t queue, ActivityRole, std::int32_t put)> add;
  std::function<void(std::int32_t before, std::int32_t after, Picoseconds delay)> depend;
};

// One put, as its queue takes it.
struct PutOrder {
  std::int32_t put = 0;  // the caller's number
  RankId to;
  int level = 0;               // that it crosses
  Activity flight;             // what it costs on its way
  std::optional<Fence> fence;  // of the signals behind it; none: there are none
  bool waits = false;          // for others than its queue
};

// The puts of one rank's queue, as activities: posts, drains and signals in the queue, transfers
// and what the NIC does beside it, as the fences of their signals ask (docs/simulator.md). One
// model for plans (sim/build.h) and for exchanges without a plan (sim/exchange.h).
class PutQueue {
 public:
  enum class Poster : std::uint8_t { Proxy, Kernel };
  struct Options {
    RankId rank;
    std::int32_t queue = 0;
    Poster poster = Poster::Proxy;
    bool posts = true;   // take time
    bool fences = true;  // signals wait for what orders them, and not for their own put alone
    // Batches are as the caller says, and not puts in a row: they end by end_batch alone.
    bool counted = false;
  };
  // The machine and the map outlive this.
  PutQueue(const Machine& machine, const ResourceMap& map, Options options)
      : machine_(machine), map_(map), options_(options) {}

  struct Posted {
    std::int32_t post = -1;
    std::int32_t flight = -1;
  };
  Posted post(const PutOrder& order, const PutWriter& writer);
  // Signals of all open batches are raised. After the last put, and wherever no batch must go on.
  void end_batches(const PutWriter& writer);
  // Of the batch to one rank; an epoch's has no one rank.
  void end_batch(RankId to, const PutWriter& writer);

  // What is over when the put's signal is raised. Requires: its batch has ended.
  [[nodiscard]] std::int32_t signal_of(std::int32_t put) const;
  // What is over when the put and all before it have arrived, and the queue knows.
  [[nodiscard]] std::int32_t completed(std::int32_t put, const PutWriter& writer);

 private:
  struct Pending {
    std::int32_t put = 0;
    std::int32_t post = -1;
    std::int32_t flight = -1;
    RankId to;
    int level = 0;
    Picoseconds alone;  // of its flight
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
  std::map<RankId, Batch> open_;  // whose signals are not raised yet; an epoch's of no rank
  Fence policy_ = Fence::PerPut;  // theirs
  std::vector<Pending> all_;
  std::map<std::int32_t, std::size_t> at_;       // by put, in all_
  std::map<std::int32_t, std::int32_t> signal_;  // by put: what its signals wait for
  std::map<std::size_t, std::int32_t> joins_;    // by place in all_: it and all before are over
  std::map<RankId, std::int32_t> last_to_;       // flights, by destination: they arrive in order
  std::map<RankId, std::int32_t> held_to_;       // by destination: what later puts stand behind
  std::int32_t held_ = -1;                       // what all later puts stand behind
  std::size_t unheld_ = 0;                       // of all_: since then
};

}  // namespace harpe
