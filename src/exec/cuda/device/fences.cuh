#pragma once

#include "exec/cuda/device/types.h"

// Loads, stores and fences with their scope in the name. Rules (PTX memory model):
// - data written by generic stores and read by the copy engine (or the reverse) needs a proxy fence
//   between the write and the read, besides the ordering of the flag that announces it;
// - a flag between GPUs, or written by a copy engine, is released and acquired at system scope.
namespace harpe::device {

// Acquire at system scope: what was released before this value was stored is visible after it.
HP_DEVICE std::uint32_t load_acquire_system(const std::uint32_t* address) {
  std::uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}

HP_DEVICE std::uint64_t load_acquire_system(const std::uint64_t* address) {
  std::uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
  return value;
}

// Orders nothing; for polling.
HP_DEVICE std::uint32_t load_relaxed_system(const std::uint32_t* address) {
  std::uint32_t value;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}

// The same of two words side by side, each for itself. Requires: 8 bytes' alignment.
struct WordPair {
  std::uint32_t first;
  std::uint32_t second;
};
HP_DEVICE WordPair load_relaxed_system_pair(const std::uint32_t* address) {
  WordPair pair;
  asm volatile("ld.relaxed.sys.global.v2.u32 {%0, %1}, [%2];"
               : "=r"(pair.first), "=r"(pair.second)
               : "l"(address)
               : "memory");
  return pair;
}

HP_DEVICE void store_release_system(std::uint32_t* address, std::uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

HP_DEVICE void store_release_system(std::uint64_t* address, std::uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}

HP_DEVICE void store_relaxed_system(std::uint32_t* address, std::uint32_t value) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

HP_DEVICE void store_relaxed_system(std::uint64_t* address, std::uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}

// Behind a fence of this thread's at system scope: what it wrote or acquired before the fence is
// visible to who acquires the sum. (`red.release` would bring a fence of its own.)
HP_DEVICE void add_relaxed_system(std::uint32_t* address, std::uint32_t value) {
  asm volatile("red.relaxed.sys.global.add.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

// Returns the value before; releases and acquires among the blocks of one GPU.
HP_DEVICE std::uint32_t add_acquire_release_gpu(std::uint32_t* address, std::uint32_t value) {
  std::uint32_t before;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(address), "r"(value)
               : "memory");
  return before;
}

// Of one GPU's threads alone, in its memory.
HP_DEVICE std::uint32_t add_relaxed_gpu(std::uint32_t* address, std::uint32_t value) {
  std::uint32_t before;
  asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(address), "r"(value)
               : "memory");
  return before;
}

HP_DEVICE std::uint64_t add_relaxed_gpu(std::uint64_t* address, std::uint64_t value) {
  std::uint64_t before;
  asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;"
               : "=l"(before)
               : "l"(address), "l"(value)
               : "memory");
  return before;
}

HP_DEVICE std::uint64_t load_acquire_gpu(const std::uint64_t* address) {
  std::uint64_t value;
  asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
  return value;
}

HP_DEVICE std::uint32_t load_acquire_gpu(const std::uint32_t* address) {
  std::uint32_t value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}

HP_DEVICE void store_release_gpu(std::uint32_t* address, std::uint32_t value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

HP_DEVICE void store_release_gpu(std::uint64_t* address, std::uint64_t value) {
  asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}

HP_DEVICE std::uint32_t compare_exchange_system(std::uint32_t* address, std::uint32_t expected,
                                                std::uint32_t desired) {
  std::uint32_t before;
  asm volatile("atom.acq_rel.sys.global.cas.b32 %0, [%1], %2, %3;"
               : "=r"(before)
               : "l"(address), "r"(expected), "r"(desired)
               : "memory");
  return before;
}

// The smaller of what is there and `value`, among the blocks of one GPU; orders nothing.
HP_DEVICE void min_relaxed_gpu(std::uint64_t* address, std::uint64_t value) {
  asm volatile("red.relaxed.gpu.global.min.u64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}

// The larger, likewise.
HP_DEVICE void max_relaxed_gpu(std::uint64_t* address, std::uint64_t value) {
  asm volatile("red.relaxed.gpu.global.max.u64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}

// Among the threads of a block, in its shared memory.
HP_DEVICE std::uint32_t load_acquire_block(const std::uint32_t* address) {
  std::uint32_t value;
  asm volatile("ld.acquire.cta.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}

HP_DEVICE void store_release_block(std::uint32_t* address, std::uint32_t value) {
  asm volatile("st.release.cta.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

HP_DEVICE void fence_system() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

HP_DEVICE void fence_gpu() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

// Generic and asynchronous accesses of global memory, in both directions.
HP_DEVICE void fence_proxy_async() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

// Generic stores to shared memory before; copy engine and tensor cores read it after a barrier.
HP_DEVICE void fence_proxy_async_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Kernels that were launched to begin early (LaunchShape) overlap the end of the one before in
// their stream. Before this a thread reads what is fixed for the execution alone, and writes
// nothing; without such a launch it does nothing.
HP_DEVICE void await_kernel_before() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// The next kernel may take multiprocessors that this one leaves, once all its blocks said so or
// ended. Requires: the block awaits nothing more that other kernels raise, since these may have to
// wait for the multiprocessors.
HP_DEVICE void let_next_kernel_begin() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// Brings the line to the second-level cache.
HP_DEVICE void prefetch(const void* line) { asm volatile("prefetch.global.L2 [%0];" ::"l"(line)); }

// Nanoseconds, the same clock on all multiprocessors of one GPU; ticks coarsely.
HP_DEVICE std::uint64_t global_timer() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// The clock of the multiprocessor; it wraps within seconds.
HP_DEVICE std::uint32_t clocks() {
  std::uint32_t now;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(now));
  return now;
}

HP_DEVICE void pause(std::uint32_t nanoseconds) {
  asm volatile("nanosleep.u32 %0;" ::"r"(nanoseconds));
}

}  // namespace harpe::device
