#pragma once

#include "exec/cuda/device/fences.cuh"
#include "exec/cuda/kernels/gemm/device/gemm_box.cuh"
#include "exec/cuda/kernels/gemm/device/part_ticket.h"

// How the parts of a tile that is cut along K become the tile. Each part stores its sums in memory
// and arrives at the tile's ticket. Once all have arrived, each adds up a share of the tile, in the
// order of the parts, so that as many SMs read as have computed. A part behind which its consumer
// computes another tile does not wait for the others, and one that has waited long enough leaves:
// the part that arrives last adds up their shares. So no part depends on one that has no SM yet,
// and the bits do not depend on which part adds up.
namespace harpe::device {

// Where args.partials holds this thread's sums: quads, those of the 128 threads side by side.
template <GemmConfig kConfig>
HP_DEVICE float4* partial_of(const GemmArgs& args, const GemmUnit& unit, int part, int consumer) {
  constexpr int kBlocks = kConfig.arrivals_per_tile() * kConfig.cluster;
  constexpr std::int64_t kQuads = kConfig.slices() * kConfig.slice_sums() / 4;
  const int in_cluster = kConfig.cluster == 1 ? 0 : static_cast<int>(block_in_cluster());
  const std::int64_t block =
      (static_cast<std::int64_t>(unit.tile - args.full_tiles) * unit.parts + part) * kBlocks +
      in_cluster * kConfig.arrivals_per_tile() + (kConfig.ping_pong ? 0 : consumer);
  return reinterpret_cast<float4*>(args.partials) + block * kQuads * 128 + threadIdx.x % 128;
}

// Two words: the ticket, and how many boxes of the consumer's block of C are stored.
template <GemmConfig kConfig>
HP_DEVICE std::uint32_t* ticket_of(const GemmArgs& args, const GemmUnit& unit, int consumer) {
  constexpr int kBlocks = kConfig.arrivals_per_tile() * kConfig.cluster;
  const int in_cluster = kConfig.cluster == 1 ? 0 : static_cast<int>(block_in_cluster());
  return args.tickets +
         2 * ((unit.tile - args.full_tiles) * kBlocks + in_cluster * kConfig.arrivals_per_tile() +
              (kConfig.ping_pong ? 0 : consumer));
}

// By one thread of a part that waits: returns the ticket of all parts, or an empty one once the
// part has left its share.
HP_DEVICE PartTicket await_parts(std::uint32_t* word, PartTicket seen, int part, int parts) {
  constexpr std::uint32_t kMostClocks = 30000;  // 20 us
  const std::uint32_t begun = clocks();
  while (seen.arrived() < parts) {
    if (clocks() - begun < kMostClocks) {
      seen.word = load_acquire_gpu(word);
      continue;
    }
    const std::uint32_t before = compare_exchange_system(word, seen.word, seen.without(part).word);
    if (before == seen.word) return {};
    seen.word = before;
  }
  return seen;
}

// What a part adds up: a bit for each part whose share that is, and kHasWaited.
constexpr std::uint32_t kHasWaited = 1U << 31;

// By one thread, behind the stores of the part's sums: arrives, and waits for the other parts if
// the part `may_wait` and has a share. Returns what the part adds up.
template <GemmConfig kConfig>
HP_DEVICE std::uint32_t take_shares(const GemmArgs& args, const GemmUnit& unit, int consumer,
                                    bool may_wait, bool is_poisoned) {
  constexpr int kAll = Pieces<kConfig>::kAll;
  const bool waits = may_wait && share_begin(kAll, unit.part, args.parts) <
                                     share_begin(kAll, unit.part + 1, args.parts);
  std::uint32_t* const word = ticket_of<kConfig>(args, unit, consumer);
  const std::uint32_t added = PartTicket::arrival(unit.part, waits, is_poisoned);
  PartTicket ticket{.word = add_acquire_release_gpu(word, added) + added};
  const bool is_last = ticket.arrived() == unit.parts;
  if (!is_last) {
    if (!waits) return 0;
    ticket = await_parts(word, ticket, unit.part, unit.parts);
    if (ticket.arrived() == 0) return 0;
  }
  if (!waits && ticket.waiting() == 0) *word = 0;
  const std::uint32_t shares = ticket.is_poisoned() ? 0 : ticket.shares_of(unit.part, is_last);
  return shares | (waits ? kHasWaited : 0);
}

// By one thread of a part that has waited for the others, later: nothing waits for this.
template <GemmConfig kConfig>
HP_DEVICE void stop_waiting(const GemmArgs& args, const GemmUnit& unit, int consumer) {
  std::uint32_t* const word = ticket_of<kConfig>(args, unit, consumer);
  const PartTicket before{.word = add_relaxed_gpu(word, 0U - PartTicket::kWaiting)};
  if (before.waiting() == 1) *word = 0;
}

// Stores this part's sums in memory and returns what the part adds up. All threads meet at a
// barrier behind their stores. One of them then takes the ticket, with acquire and release at GPU
// scope, which orders the stores of all before the loads of other parts.
template <GemmConfig kConfig>
HP_DEVICE std::uint32_t leave_sums(const GemmArgs& args, const GemmShared<kConfig>& shared,
                                   const GemmWalk<kConfig>& walk, int consumer, bool is_poisoned,
                                   const GemmSums<kConfig>& sums) {
  constexpr int kQuads = kConfig.slice_sums() / 4;
  float4* mine = partial_of<kConfig>(args, walk.unit(), walk.unit().part, consumer);
#pragma unroll
  for (int quad = 0; quad < kConfig.slices() * kQuads; ++quad) {
    const float* from = &sums[quad / kQuads][quad % kQuads * 4];
    __stcg(&mine[quad * 128], make_float4(from[0], from[1], from[2], from[3]));
  }
  sync_threads(1 + consumer, 128);
  std::uint32_t& shares = shared.control().shares[consumer];
  if (threadIdx.x % 128 == 0) {
    shares = take_shares<kConfig>(args, walk.unit(), consumer, walk.is_last(), is_poisoned);
  }
  sync_threads(1 + consumer, 128);
  return shares;
}

// A quad that another SM may have written, or zeros if not `is_there`; the relaxed GPU-scope load
// reads it from L2.
HP_DEVICE float4 load_quad(const float4* from, bool is_there) {
  float4 value = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
  asm volatile(
      "{ .reg .pred there; setp.ne.s32 there, %5, 0;\n"
      "@there ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4]; }"
      : "+f"(value.x), "+f"(value.y), "+f"(value.z), "+f"(value.w)
      : "l"(from), "r"(static_cast<int>(is_there))
      : "memory");
  return value;
}

// The sums of all parts of piece `index` of a slice. The loads of as many parts as fit in registers
// are on their way together; zeros in place of further parts change no bit of a sum.
template <GemmConfig kConfig>
HP_DEVICE void add_up_piece(const GemmArgs& args, const GemmUnit& unit, int consumer, int slice,
                            int index, float (&to)[Pieces<kConfig>::kSums]) {
  constexpr int kSums = Pieces<kConfig>::kSums;
  constexpr int kMostQuads = 24;  // in registers beside the sums
  constexpr int kQuads = kSums / 4;
  constexpr int kParts = kQuads < kMostQuads ? kMostQuads / kQuads : 1;
#pragma unroll
  for (float& sum : to) sum = 0.0F;
  const float4* from = partial_of<kConfig>(args, unit, 0, consumer);
  const std::int64_t apart = partial_of<kConfig>(args, unit, 1, consumer) - from;
  from += (slice * kConfig.slice_sums() + index * kSums) / 4 * 128;
#pragma unroll 1
  for (int first = 0; first < unit.parts; first += kParts) {
    float4 quads[kParts][kQuads];
#pragma unroll
    for (int part = 0; part < kParts; ++part, from += apart) {
#pragma unroll
      for (int quad = 0; quad < kQuads; ++quad) {
        quads[part][quad] = load_quad(&from[quad * 128], first + part < unit.parts);
      }
    }
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
#pragma unroll
      for (int quad = 0; quad < kQuads; ++quad) {
        to[quad * 4] += quads[part][quad].x;
        to[quad * 4 + 1] += quads[part][quad].y;
        to[quad * 4 + 2] += quads[part][quad].z;
        to[quad * 4 + 3] += quads[part][quad].w;
      }
    }
  }
}

// Whether the part adds up the piece, of all of the consumer's. `shares`: of leave_sums.
template <GemmConfig kConfig>
HP_DEVICE bool has_piece(std::uint32_t shares, int piece, int parts) {
  return (shares >> share_of(piece, Pieces<kConfig>::kAll, parts) & 1) != 0;
}

// By one thread that has completely stored so many boxes of a consumer's block of C: whether the
// block is stored, if need be by all parts.
template <GemmConfig kConfig>
HP_DEVICE bool is_complete(const GemmArgs& args, const GemmUnit& unit, int consumer, int stored) {
  constexpr int kBoxes = kConfig.slices() * kConfig.boxes_of_slice();
  if (!kConfig.cuts || unit.parts == 1 || stored == 0) return stored > 0;
  std::uint32_t* const word = ticket_of<kConfig>(args, unit, consumer) + 1;
  fence_proxy_async();
  const std::uint32_t all = add_acquire_release_gpu(word, stored) + stored;
  if (all == kBoxes) *word = 0;
  return all == kBoxes;
}

}  // namespace harpe::device
