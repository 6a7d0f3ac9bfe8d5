#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harpe/api.h"
#include "harpe/error.h"
#include "harpe/run.h"

namespace harpe {
HARPE_INLINE namespace v1 {
// The value of a call that returns nothing.
struct Done {};

// How ranks exchange a few bytes before they can access each other's memory. Any store or
// collective that a program already has can implement it.
class HARPE_API Exchange {
 public:
  using Bytes = std::vector<std::byte>;

  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  virtual ~Exchange();

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int ranks() const = 0;
  // Returns every rank's bytes in the order of ranks. All ranks call it equally often, and it
  // returns once all have called. A time limit is up to the implementation.
  [[nodiscard]] virtual Checked<std::vector<Bytes>> all_gather(const Bytes& own) = 0;
};

// Exchanges for ranks that are threads of this process, in rank order; one thread uses each. If a
// rank waits longer than `limit` for the others, the exchange fails on all ranks (N010).
[[nodiscard]] HARPE_API std::vector<std::shared_ptr<Exchange>> local_exchanges(
    int ranks, std::chrono::milliseconds limit = std::chrono::seconds(60));

// The arguments of meet(): how processes connect through a socket.
struct Meeting {
  std::string address;      // "HOST:PORT": rank 0 listens there, all others connect
  std::string secret = {};  // the same for all ranks; "" trusts any process that connects
  int rank = 0;
  int ranks = 1;
  std::chrono::milliseconds limit{30'000};  // for all ranks to connect, and for each exchange
};
// Returns once all ranks have connected. Errors: I311; N010 to N014; X018.
[[nodiscard]] HARPE_API Checked<std::shared_ptr<Exchange>> meet(const Meeting& meeting);

struct GroupOptions {
  std::shared_ptr<Exchange> exchange;  // its rank is this rank
  std::optional<int> gpu = {};         // this rank's GPU; none: the host's CPU
  std::int64_t heap_bytes = 0;         // reserved at once; plans that need more extend it
  // Memory for Group::allocate. All ranks reserve the largest value that a rank passes.
  std::int64_t tensor_bytes = 0;
  // Memory for Executable::take_results on GPUs, likewise the largest value of all ranks. CPU ranks
  // take results from the memory for tensors.
  std::int64_t result_bytes = 0;
  // Limit of each wait for another rank in an execution. The other rank's program may be late.
  std::chrono::milliseconds wait_limit{60'000};
  CpuKernels cpu_kernels = CpuKernels::Libraries;
  // GPUs only: the folder of compiled kernels (none: each process compiles its own), and folders to
  // search for NVIDIA's libraries besides the loader's places.
  std::optional<std::string> kernel_cache = {};
  std::vector<std::string> library_folders = {};
  // Called in the thread of Executable::make before it compiles a kernel that is not in the folder.
  // Compiling takes seconds.
  std::function<void(std::string_view kernel)> compiling = {};
  // CPU ranks only: a launch that waits for other ranks calls it every few milliseconds; it must
  // not throw. If it returns false, the launch gives up, which is a fault of the group.
  std::function<bool()> waiting = {};
};

struct GroupStatus {
  // Memory of this rank that other ranks can access: the plans' shared arena, tensors, and signals.
  std::int64_t heap_bytes = 0;
  // Live tensors that Group::allocate and Executable::take_results returned.
  std::int64_t tensor_bytes = 0;
  std::int64_t executables = 0;
};

// One rank of several on one host, each in a thread or process of its own. A group owns the memory
// that its ranks access on each other; the executables of many plans share it. Copies refer to the
// same group. It ends with the last copy and the last executable, without waiting for other ranks.
// Calls about one group, its executables included, come from one thread at a time; different groups
// are independent. All ranks make the *collective* calls in the same order.
class HARPE_API Group {
 public:
  // Collective. Errors: I311; N002, N010, N017 other ranks do not join, or are on another host;
  // G0xx no such GPU.
  [[nodiscard]] static Checked<Group> join(const GroupOptions& options);

  [[nodiscard]] int rank() const;
  [[nodiscard]] int ranks() const;
  // Returns the error of a failed execution if the failure is already known: the same error that
  // later launches return, with which rank waited for which.
  [[nodiscard]] Checked<Done> check() const;
  // Collective, after a failure: abandons the failed executions and clears faults and signals.
  // Executables remain usable. Errors: N010, N017; G005.
  [[nodiscard]] Checked<Done> reset() const;
  [[nodiscard]] GroupStatus status() const;
  // Memory of this rank for a tensor that other ranks may access, aligned to 256 bytes; on GPUs it
  // is GPU memory. Executables use tensors there in place that they would otherwise copy
  // (LocalTensor::Place::Heap). The memory is free again once the last pointer to it ends, on any
  // thread: on CPU ranks not during a launch that uses it; on GPUs for work ordered after the
  // launches that use it. The first free range that is long enough is taken, so ranks that allocate
  // and free in the same order get equal offsets. Errors: I311 `bytes` below 1, or no free range
  // that long.
  [[nodiscard]] Checked<std::shared_ptr<std::byte>> allocate(std::int64_t bytes) const;

  struct State;
  explicit Group(std::shared_ptr<State> state) : state_(std::move(state)) {}
  [[nodiscard]] const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace v1
}  // namespace harpe
