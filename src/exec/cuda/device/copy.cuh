#pragma once

#include "exec/cuda/device/copy_args.h"
#include "exec/cuda/device/tma.cuh"
#include "exec/cuda/device/wait.cuh"

// Communication blocks: one thread moves granules through shared memory with the bulk copy engine.
// It keeps loads in flight ahead of every store, and several stores in flight, because a store to a
// peer takes microseconds. Source and destination may lie on any GPU that this one can access.
namespace harpe::device {

inline constexpr int kCopyLoads = 3;   // loads in flight
inline constexpr int kCopyStores = 3;  // stores in flight, beside the newest
inline constexpr int kCopySlots = kCopyLoads + kCopyStores;

// What a thread has stored and not yet published: the counters of the stores in flight, newest
// first, and how many stores of the previous job have completed. A fence also waits for stores in
// flight, so one behind each store would leave none in flight; one fence covers a block's share of
// a job.
class Unpublished {
 public:
  // One more store is in flight, and the oldest one has completed.
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

  // All stores have completed.
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

// One thread's walk over the granules of all jobs: it copies granules `first`, `first + stride`, …
struct CopyCursor {
  std::int64_t granule;
  int job = 0;

  // Advances to the job that contains the granule; false behind the last job.
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

// Called by one thread of a block: copies its granules of all jobs. `buffer` holds kCopySlots
// granules, `filled` as many initialised mbarriers of one arrival. Once a wait has expired, nothing
// is stored or published.
class CopyRun {
 public:
  HP_DEVICE CopyRun(const CopyJob* jobs, int count, int first, int stride, char* buffer,
                    Barrier* filled)
      : jobs_(jobs),
        count_(count),
        stride_(stride),
        buffer_(buffer),
        filled_(filled),
        load_{.granule = first},
        store_{.granule = first},
        more_(load_.settle(jobs, count)) {}

  // Starts the first loads, of jobs without a wait, before anything may be stored.
  HP_DEVICE void load_ahead() {
    while (can_load() && jobs_[load_.job].ready.flag == nullptr) load();
  }
  HP_DEVICE void finish(Waiter& waiter) {
    while (more_ || stores_ < loads_) {
      while (can_load()) {
        waiter.wait(jobs_[load_.job].ready, load_.job, [] { return true; });
        load();
      }
      store(waiter.poisoned());
    }
    wait_stores<0>();
    unpublished_.finish(waiter.poisoned());
  }
  // Instead of `finish` if nothing may be stored: the block must not end before its loads.
  HP_DEVICE void give_up() {
    for (; stores_ < loads_; ++stores_) await_loaded();
  }

 private:
  [[nodiscard]] HP_DEVICE bool can_load() const { return more_ && loads_ - stores_ < kCopyLoads; }
  HP_DEVICE void await_loaded() {
    wait_barrier(&filled_[stores_ % kCopySlots], (stores_ / kCopySlots) & 1);
  }
  HP_DEVICE void load() {
    const CopyJob& job = jobs_[load_.job];
    const int slot = loads_ % kCopySlots;
    const std::uint32_t bytes = granule_bytes(job, load_.granule);
    wait_stores_read<kCopySlots - kCopyLoads>();  // the slot's previous store has read it
    arrive_expecting(&filled_[slot], bytes);
    load_bytes(buffer_ + slot * kCopyGranule,
               granule_address(static_cast<const char*>(job.from), load_.granule), bytes,
               &filled_[slot]);
    ++loads_;
    load_.granule += stride_;
    more_ = load_.settle(jobs_, count_);
  }
  HP_DEVICE void store(bool poisoned) {
    store_.settle(jobs_, count_);
    const CopyJob& job = jobs_[store_.job];
    await_loaded();
    if (!poisoned) {
      store_bytes(granule_address(static_cast<char*>(job.to), store_.granule),
                  buffer_ + stores_ % kCopySlots * kCopyGranule,
                  granule_bytes(job, store_.granule));
      commit_stores();
    }
    wait_stores<kCopyStores>();
    unpublished_.store(job.done, poisoned);
    ++stores_;
    store_.granule += stride_;
  }

  const CopyJob* jobs_;
  int count_;
  int stride_;
  char* buffer_;
  Barrier* filled_;
  CopyCursor load_;
  CopyCursor store_;
  Unpublished unpublished_;
  int loads_ = 0;
  int stores_ = 0;
  bool more_;
};

}  // namespace harpe::device
