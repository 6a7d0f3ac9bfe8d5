#pragma once

#include "exec/cuda/device/types.h"

// mbarriers in shared memory, and barriers among the threads of a block. A phase completes when all
// arrivals and all announced bytes are in. Arrivals release and completed waits acquire at block
// scope, which suffices for shared memory, all that they guard. (At cluster scope each wait also
// invalidates the L1 cache: measured, a third of a GEMM's rate.)
namespace harpe::device {

using Barrier = std::uint64_t;

HP_DEVICE std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

HP_DEVICE void init_barrier(Barrier* barrier, std::uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals)
               : "memory");
}

// Its memory may then hold another barrier.
HP_DEVICE void invalidate_barrier(Barrier* barrier) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// Orders earlier inits before uses by other threads, blocks of the cluster and the bulk copy
// engine, behind a barrier.
HP_DEVICE void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

HP_DEVICE void arrive(Barrier* barrier, std::uint32_t count = 1) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(count)
               : "memory");
}

// Arrives at the corresponding mbarrier of block `block` of the cluster.
HP_DEVICE void arrive_at(Barrier* barrier, std::uint32_t block, std::uint32_t count = 1) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote], %2;\n"
      "}\n" ::"r"(shared_address(barrier)),
      "r"(block), "r"(count)
      : "memory");
}

// One arrival; announces `bytes` that the bulk copy engine will add in this phase.
HP_DEVICE void arrive_expecting(Barrier* barrier, std::uint32_t bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}

// Waits until the phase of parity `parity` has completed. Bounded, because every arriving role
// continues even if a wait of its own has expired (wait.cuh).
HP_DEVICE void wait_barrier(Barrier* barrier, std::uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra.uni over;\n"
      "bra.uni again;\n"
      "over:\n"
      "}\n" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

// Whether the phase of parity `parity` has completed; does not wait.
HP_DEVICE bool is_over(Barrier* barrier, std::uint32_t parity) {
  std::uint32_t over;
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "mbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\n"
      "selp.u32 %0, 1, 0, done;\n"
      "}\n"
      : "=r"(over)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return over != 0;
}

// Named barrier `id` (1 to 15) of the block, over `threads` threads.
HP_DEVICE void sync_threads(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

HP_DEVICE void arrive_threads(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// As sync_threads; returns whether `value` is true for any of the threads.
HP_DEVICE bool any_of_threads(int id, int threads, bool value) {
  std::uint32_t any;
  asm volatile(
      "{\n"
      ".reg .pred one;\n"
      ".reg .pred all;\n"
      "setp.ne.u32 one, %1, 0;\n"
      "barrier.cta.red.or.aligned.pred all, %2, %3, one;\n"
      "selp.u32 %0, 1, 0, all;\n"
      "}\n"
      : "=r"(any)
      : "r"(value ? 1U : 0U), "r"(id), "r"(threads)
      : "memory");
  return any != 0;
}

// True for one thread of the warp; all of its threads must call it.
HP_DEVICE bool elected() {
  std::uint32_t chosen;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "elect.sync _|p, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "}\n"
      : "=r"(chosen));
  return chosen != 0;
}

HP_DEVICE std::uint32_t block_in_cluster() {
  std::uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// After fence_barrier_init: announces this thread block's barriers to the cluster. The arrival is
// relaxed, so it orders no other writes of this thread; a release would flush them to the L2 cache.
HP_DEVICE void announce_barriers() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

// By all threads of a block: tells the cluster that the block no longer uses its shared memory.
HP_DEVICE void release_to_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

// Waits until all thread blocks of the cluster have announced their barriers, or have released.
HP_DEVICE void await_cluster() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// The address in block `block` of the cluster that corresponds to `pointer` in this block.
HP_DEVICE std::uint32_t shared_address_in(const void* pointer, std::uint32_t block) {
  std::uint32_t address;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(address)
               : "r"(shared_address(pointer)), "r"(block));
  return address;
}

// Stores four floats into shared memory of the cluster; on completion they count as bytes at
// `barrier` of the same block.
HP_DEVICE void store_in_cluster(std::uint32_t address, const float4& quad, std::uint32_t barrier) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, "
      "[%5];" ::"r"(address),
      "f"(quad.x), "f"(quad.y), "f"(quad.z), "f"(quad.w), "r"(barrier)
      : "memory");
}

HP_DEVICE std::uint32_t load_word_of_cluster(std::uint32_t address) {
  std::uint32_t word;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
  return word;
}

// A position in a ring of `Stages` slots, and the parity of its phase.
template <int Stages>
struct Ring {
  int slot = 0;
  std::uint32_t parity = 0;

  HP_DEVICE void advance() {
    if (++slot == Stages) {
      slot = 0;
      parity ^= 1;
    }
  }

  // The previous position; in a new ring, one whose phase counts as completed.
  [[nodiscard]] HP_DEVICE Ring before() const {
    return slot == 0 ? Ring{Stages - 1, parity ^ 1} : Ring{slot - 1, parity};
  }

  HP_DEVICE void advance(int count) {
    const int position = slot + count;
    parity ^= static_cast<std::uint32_t>(position / Stages) & 1;
    slot = position % Stages;
  }
};

// Waits until all slots are released; `ring` is the next position to fill. The loading thread of a
// cluster calls this before it exits: until then other thread blocks multicast into its slots and
// arrive at their barriers.
template <int Stages>
HP_DEVICE void await_released(Barrier* emptied, Ring<Stages> ring) {
  for (int i = 0; i < Stages; ++i, ring.advance()) {
    wait_barrier(&emptied[ring.slot], ring.parity ^ 1);
  }
}

}  // namespace harpe::device
