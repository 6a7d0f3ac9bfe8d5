#pragma once

#include "exec/cuda/device/copy_args.h"
#include "exec/cuda/device/tma.cuh"
#include "exec/cuda/device/wait.cuh"

// Communication blocks: one thread moves granules through shared memory with the copy engine, some
// loads ahead of every store, and some stores on their way: a store to a peer takes microseconds.
// Source and destination may lie on any GPU that this one can reach.
namespace harpe::device {

inline constexpr int kCopyLoads = 3;   // on their way in
inline constexpr int kCopyStores = 3;  // on their way out, beside the newest
inline constexpr int kCopySlots = kCopyLoads + kCopyStores;

// What a thread has stored and not yet published: counters of the stores on their way, the newest
// first, and how many have arrived of the job before those. A fence waits for stores on their way
// too, so that one behind each would leave none: it comes once for what a block has of a job.
class Unpublished {
 public:
  // Stored, and the oldest on its way has arrived.
  HP_DEVICE void store(std::uint32_t* newest, bool poisoned) {
    std::uint32_t* const oldest = done_[kCopyStores - 1];
#pragma unroll
    for (int i = kCopyStores - 1; i > 0; --i) done_[i] = done_[i - 1];
    done_[0] = newest;
    if (oldest != arrived_) {
      flush(poisoned);
      arrived_ = oldest;
    }
    ++count_;
  }

  // All have arrived.
  HP_DEVICE void finish(bool poisoned) {
#pragma unroll
    for (int i = 0; i < kCopyStores; ++i) store(nullptr, poisoned);
    flush(poisoned);
  }

 private:
  HP_DEVICE void flush(bool poisoned) {
    if (arrived_ != nullptr && count_ > 0 && !poisoned) publish(arrived_, count_);
    count_ = 0;
  }

  std::uint32_t* done_[kCopyStores] = {};
  std::uint32_t* arrived_ = nullptr;
  std::uint32_t count_ = 0;
};

// One thread's walk over the granules of all jobs: its own are `first`, `first + stride`, …
struct CopyCursor {
  std::int64_t granule;
  int job = 0;

  // Moves to the job that holds the granule; false beyond the last.
  HP_DEVICE bool settle(const CopyJob* jobs, int count) {
    while (job < count) {
      const std::int64_t granules = copy_arrivals(jobs[job].bytes);
      if (granule < granules) return true;
      granule -= granules;
      ++job;
    }
    return false;
  }
};

HP_DEVICE std::uint32_t granule_bytes(const CopyJob& job, std::int64_t granule) {
  const std::int64_t rest = job.bytes - granule * kCopyGranule;
  return static_cast<std::uint32_t>(rest < kCopyGranule ? rest : kCopyGranule);
}

template <class Byte>
HP_DEVICE Byte* granule_address(Byte* base, std::int64_t granule) {
  return base + granule * kCopyGranule;
}

// Called by one thread of a block. `buffer` has kCopySlots granules, `filled` as many initialised
// barriers of one arrival. Nothing is stored or published once a wait has expired.
HP_DEVICE void run_copies(const CopyJob* jobs, int count, int first, int stride, Waiter& waiter,
                          char* buffer, Barrier* filled) {
  CopyCursor load{.granule = first};
  CopyCursor store{.granule = first};
  Unpublished unpublished;
  int loads = 0;
  int stores = 0;
  bool more = load.settle(jobs, count);
  while (more || stores < loads) {
    while (more && loads - stores < kCopyLoads) {
      const CopyJob& job = jobs[load.job];
      const int slot = loads % kCopySlots;
      const std::uint32_t bytes = granule_bytes(job, load.granule);
      waiter.wait(job.ready, load.job, [] { return true; });
      wait_stores_read<kCopySlots - kCopyLoads>();  // the slot's last has been read
      arrive_expecting(&filled[slot], bytes);
      load_bytes(buffer + slot * kCopyGranule,
                 granule_address(static_cast<const char*>(job.from), load.granule), bytes,
                 &filled[slot]);
      ++loads;
      load.granule += stride;
      more = load.settle(jobs, count);
    }
    store.settle(jobs, count);
    const CopyJob& job = jobs[store.job];
    const int slot = stores % kCopySlots;
    wait_barrier(&filled[slot], (stores / kCopySlots) & 1);
    if (!waiter.poisoned()) {
      store_bytes(granule_address(static_cast<char*>(job.to), store.granule),
                  buffer + slot * kCopyGranule, granule_bytes(job, store.granule));
      commit_stores();
    }
    wait_stores<kCopyStores>();
    unpublished.store(job.done, waiter.poisoned());
    ++stores;
    store.granule += stride;
  }
  wait_stores<0>();
  unpublished.finish(waiter.poisoned());
}

}  // namespace harpe::device
