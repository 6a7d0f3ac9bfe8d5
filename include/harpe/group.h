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
// What a call returns that has nothing to give back.
struct Done {};

// How ranks exchange a few bytes before they reach each other's memory: any store or collective
// that a program has anyway.
class HARPE_API Exchange {
 public:
  using Bytes = std::vector<std::byte>;

  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  virtual ~Exchange();

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int ranks() const = 0;
  // What every rank gave, in the order of ranks. All ranks call it equally often, and it returns
  // once all have; a time limit is its own business.
  [[nodiscard]] virtual Checked<std::vector<Bytes>> all_gather(const Bytes& own) = 0;
};

// Of ranks that are threads of this process, in their order; each is used by one thread. A rank
// that waits longer than `limit` for the others ends the exchange for all (N010).
[[nodiscard]] HARPE_API std::vector<std::shared_ptr<Exchange>> local_exchanges(
    int ranks, std::chrono::milliseconds limit = std::chrono::seconds(60));

// Of processes that meet at a socket.
struct Meeting {
  std::string address;      // "HOST:PORT": rank 0 listens there, all others connect
  std::string secret = {};  // the same for all ranks; "" trusts whoever reaches the address
  int rank = 0;
  int ranks = 1;
  std::chrono::milliseconds limit{30'000};  // of coming together, and of each exchange
};
// Returns once all ranks have come. Errors: I311; N010 to N014; X018.
[[nodiscard]] HARPE_API Checked<std::shared_ptr<Exchange>> meet(const Meeting& meeting);

struct GroupOptions {
  std::shared_ptr<Exchange> exchange;  // its rank is this rank
  std::optional<int> gpu = {};         // that this rank runs on; none: this host's processor
  std::int64_t heap_bytes = 0;         // taken at once; more is taken as plans need it
  // Of memory for Group::allocate: as much as the rank that wants most, all ranks alike.
  std::int64_t tensor_bytes = 0;
  // Of memory for Executable::take_results on GPUs: likewise. On CPU ranks those take it from the
  // memory for tensors.
  std::int64_t result_bytes = 0;
  // Of any wait for another rank in an execution, whose program may be late.
  std::chrono::milliseconds wait_limit{60'000};
  CpuKernels cpu_kernels = CpuKernels::Libraries;
  // Of GPUs: a folder that keeps compiled kernels (none: each process compiles its own), and
  // folders of NVIDIA's libraries beside the loader's places.
  std::optional<std::string> kernel_cache = {};
  std::vector<std::string> library_folders = {};
  // Called by the thread that calls Executable::make before it compiles a kernel that the folder
  // does not keep, which takes seconds.
  std::function<void(std::string_view kernel)> compiling = {};
  // On CPU ranks: called by a launch every few milliseconds in which it waits for other ranks; must
  // not throw. False gives the execution up, which is then a fault of the group.
  std::function<bool()> waiting = {};
};

struct GroupStatus {
  // Memory of this rank that others reach: what plans use in turn, tensors, and signals.
  std::int64_t heap_bytes = 0;
  // Of tensors that Group::allocate and Executable::take_results gave and that are still there.
  std::int64_t tensor_bytes = 0;
  std::int64_t executables = 0;
};

// Ranks of programs, each in a thread or a process of its own, on one host. A group owns the memory
// that its ranks reach of each other; executables of many plans share it. Copies are the same
// group; it ends with the last of them and of its executables, without waiting for other ranks.
// Calls about one group, its executables included, come from one thread at a time; different groups
// do not know each other. *Collective* calls are made by all ranks, in the same order.
class HARPE_API Group {
 public:
  // Collective. Errors: I311; N002, N010, N017 other ranks do not come, or are on another host;
  // G0xx no such GPU.
  [[nodiscard]] static Checked<Group> join(const GroupOptions& options);

  [[nodiscard]] int rank() const;
  [[nodiscard]] int ranks() const;
  // Whether an execution has failed, as far as is known now: the error of later launches, who
  // waited for whom included.
  [[nodiscard]] Checked<Done> check() const;
  // Collective, after a failure: gives up what is under way and begins anew; executables go on.
  // Errors: N010, N017; G005.
  [[nodiscard]] Checked<Done> reset() const;
  [[nodiscard]] GroupStatus status() const;
  // Memory of this rank for a tensor that other ranks may reach, aligned to 256 bytes; on GPUs it
  // is the GPU's. Executables use tensors there in place that they would copy elsewhere
  // (LocalTensor::Place::Heap). It is free again once the last pointer to it ends, on any thread:
  // on CPU ranks not while a launch uses it; on GPUs for work that is ordered behind the launches
  // that use it. The first piece that is long enough is given, so ranks that allocate and free
  // alike have pieces at the same places. Errors: I311 `bytes` below 1 or more than is free in one
  // piece.
  [[nodiscard]] Checked<std::shared_ptr<std::byte>> allocate(std::int64_t bytes) const;

  struct State;
  explicit Group(std::shared_ptr<State> state) : state_(std::move(state)) {}
  [[nodiscard]] const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace v1
}  // namespace harpe
