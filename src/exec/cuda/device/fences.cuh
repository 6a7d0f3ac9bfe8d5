#pragma once

#include "exec/cuda/device/types.h"

// Loads, stores and fences with their scope in the name. Rules (PTX memory model):
// - data written by generic stores and read by the bulk copy engine (async proxy), or the reverse,
//   needs a proxy fence between write and read, besides the ordering of the flag that announces it;
// - a flag between GPUs, or written by a copy engine, is released and acquired at system scope.
namespace harpe::device {

// Acquire at system scope: whatever was released before this value was stored is visible after the
// load.
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

// Relaxed: orders nothing; for polling.
HP_DEVICE std::uint32_t load_relaxed_system(const std::uint32_t* address) {
  std::uint32_t value;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}

// The same for two adjacent words, each atomic by itself. Requires: 8-byte alignment.
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

// To be used behind this thread's fence at system scope: what the thread wrote or acquired before
// that fence is visible to a thread that acquires the sum. (`red.release` would add a fence of its
// own.)
HP_DEVICE void add_relaxed_system(std::uint32_t* address, std::uint32_t value) {
  asm volatile("red.relaxed.sys.global.add.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

// Returns the previous value; acquire and release among the blocks of one GPU.
HP_DEVICE std::uint32_t add_acquire_release_gpu(std::uint32_t* address, std::uint32_t value) {
  std::uint32_t before;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(address), "r"(value)
               : "memory");
  return before;
}

// Relaxed, among the threads of one GPU, in its memory.
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

// The same without the previous value, for which the thread would wait.
HP_DEVICE void add_quietly_gpu(std::uint64_t* address, std::uint64_t value) {
  asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
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

// Stores the minimum of the stored value and `value`, among the blocks of one GPU; orders nothing.
HP_DEVICE void min_relaxed_gpu(std::uint64_t* address, std::uint64_t value) {
  asm volatile("red.relaxed.gpu.global.min.u64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}

// The maximum, likewise.
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

// Orders generic and async-proxy accesses of global memory, in both directions.
HP_DEVICE void fence_proxy_async() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

// Orders earlier generic stores to shared memory before later reads by the bulk copy engine and
// tensor cores, behind a barrier.
HP_DEVICE void fence_proxy_async_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// A kernel that was launched to begin early (LaunchShape) overlaps the end of the previous kernel
// of its stream. Before this call a thread may only read data that is constant during the
// execution, and may write nothing. Without such a launch the call has no effect.
HP_DEVICE void await_kernel_before() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// Allows the next kernel to start on SMs that this one frees, once all of its blocks have called
// this or ended. Requires: the block waits for no more signals of other kernels, because these may
// need the same SMs; or no kernel of this GPU raises signals that it awaits, as if it bounds an
// execution (Bounds).
HP_DEVICE void let_next_kernel_begin() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// Loads the line into the L2 cache.
HP_DEVICE void prefetch(const void* line) { asm volatile("prefetch.global.L2 [%0];" ::"l"(line)); }

// Nanoseconds, by one clock for all SMs of a GPU, with a coarse resolution.
HP_DEVICE std::uint64_t global_timer() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// The SM's clock; it wraps within seconds.
HP_DEVICE std::uint32_t clocks() {
  std::uint32_t now;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(now));
  return now;
}

HP_DEVICE void pause(std::uint32_t nanoseconds) {
  asm volatile("nanosleep.u32 %0;" ::"r"(nanoseconds));
}

}  // namespace harpe::device
