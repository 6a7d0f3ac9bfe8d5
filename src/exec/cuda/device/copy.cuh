#pragma once

#include "exec/cuda/device/copy_args.h"
#include "exec/cuda/device/tma.cuh"
#include "exec/cuda/device/wait.cuh"

// Communication blocks: one thread moves granules through shared memory with the copy engine, a
// load ahead of every store. Source and destination may lie on any GPU that this one can reach.
namespace harpe::device {

inline constexpr int kCopySlots = 6;

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
  std::uint32_t* unpublished = nullptr;  // of the store before
  int loads = 0;
  int stores = 0;
  bool more = load.settle(jobs, count);
  while (more || stores < loads) {
    // One slot stays free for the store whose shared memory is still being read.
    while (more && loads - stores < kCopySlots - 1) {
      const CopyJob& job = jobs[load.job];
      const int slot = loads % kCopySlots;
      const std::uint32_t bytes = granule_bytes(job, load.granule);
      waiter.wait(job.ready, load.job);
      wait_stores_read<0>();
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
    // The store before this one had a load's time to arrive.
    wait_stores<1>();
    if (unpublished != nullptr && !waiter.poisoned()) publish(unpublished);
    unpublished = job.done;
    ++stores;
    store.granule += stride;
  }
  wait_stores<0>();
  if (unpublished != nullptr && !waiter.poisoned()) publish(unpublished);
}

}  // namespace harpe::device
