#pragma once

#include "exec/cuda/device/mbarrier.cuh"

// Copies by the bulk copy engine (TMA). Loads complete on an mbarrier, counted in bytes; parts of a
// box beyond the tensor's edge are filled with zeros and count in full. Stores and reductions
// complete in groups of the issuing thread; nothing is written beyond the edge.
namespace harpe::device {

HP_DEVICE void prefetch_map(const TensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

HP_DEVICE void load_tile(void* to, const TensorMap* map, Barrier* barrier, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4}], [%2];" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y)
      : "memory");
}

// The same for data that is not read again: evicted first from the L2 cache.
HP_DEVICE void load_tile_once(void* to, const TensorMap* map, Barrier* barrier, int x, int y) {
  constexpr std::uint64_t kEvictFirst = 0x12F0000000000000;
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".L2::cache_hint [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "l"(kEvictFirst)
      : "memory");
}

// The same box goes to the same offset in every block of the mask `blocks`, and counts at the same
// mbarrier there.
HP_DEVICE void load_tile_multicast(void* to, const TensorMap* map, Barrier* barrier, int x, int y,
                                   std::uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%4, %5}], [%2], %3;" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "h"(blocks), "r"(x), "r"(y)
      : "memory");
}

HP_DEVICE void load_tile_once_multicast(void* to, const TensorMap* map, Barrier* barrier, int x,
                                        int y, std::uint16_t blocks) {
  constexpr std::uint64_t kEvictFirst = 0x12F0000000000000;
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster.L2::cache_hint [%0], [%1, {%4, %5}], [%2], %3, %6;" ::"r"(
          shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "h"(blocks), "r"(x), "r"(y), "l"(kEvictFirst)
      : "memory");
}

HP_DEVICE void load_tile(void* to, const TensorMap* map, Barrier* barrier, int x, int y, int z,
                         int w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}

HP_DEVICE void load_tile_once(void* to, const TensorMap* map, Barrier* barrier, int x, int y, int z,
                              int w) {
  constexpr std::uint64_t kEvictFirst = 0x12F0000000000000;
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".L2::cache_hint [%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(w), "l"(kEvictFirst)
      : "memory");
}

HP_DEVICE void store_tile(const TensorMap* map, const void* from, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
      "r"(shared_address(from)), "r"(x), "r"(y)
      : "memory");
}

HP_DEVICE void store_tile(const TensorMap* map, const void* from, int x, int y, int z, int w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(
          map),
      "r"(shared_address(from)), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}

// Adds the box to global memory, element by element; the order among tiles is not defined.
HP_DEVICE void add_tile(const TensorMap* map, const void* from, int x, int y) {
  asm volatile(
      "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%2, %3}], "
      "[%1];" ::"l"(map),
      "r"(shared_address(from)), "r"(x), "r"(y)
      : "memory");
}

HP_DEVICE void add_tile(const TensorMap* map, const void* from, int x, int y, int z, int w) {
  asm volatile(
      "cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.tile.bulk_group "
      "[%0, {%2, %3, %4, %5}], [%1];" ::"l"(map),
      "r"(shared_address(from)), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}

// `bytes` and both addresses are multiples of 16.
HP_DEVICE void load_bytes(void* to, const void* from, std::uint32_t bytes, Barrier* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}

HP_DEVICE void store_bytes(void* to, const void* from, std::uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(shared_address(from)), "r"(bytes)
               : "memory");
}

HP_DEVICE void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Waits until all but the last `Pending` groups have *read* their shared memory, so that it may be
// overwritten.
template <int Pending>
HP_DEVICE void wait_stores_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}

// Waits until all but the last `Pending` groups have written their destination.
template <int Pending>
HP_DEVICE void wait_stores() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(Pending) : "memory");
}

}  // namespace harpe::device
