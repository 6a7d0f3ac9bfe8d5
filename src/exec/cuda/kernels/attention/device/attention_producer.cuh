#pragma once

#include "exec/cuda/device/tma.cuh"
#include "exec/cuda/device/wait.cuh"
#include "exec/cuda/kernels/attention/device/attention_order.h"
#include "exec/cuda/kernels/attention/device/attention_shared.cuh"

// The producer thread of an attention block: it draws tickets and loads queries, keys and values.
namespace harpe::device {

// The query tile of a ticket.
template <AttentionConfig kConfig>
HP_DEVICE QueryTile query_tile(const AttentionArgs& args, int ticket) {
  const AttentionTicket work =
      attention_ticket(ticket, args.tiles, args.slices, args.slices_per_group);
  int panel = 0;
  int tile = work.tile;
  for (;; ++panel) {
    const int tiles = ceil_div(args.panels[panel].rows, query_rows(kConfig));
    if (tile < tiles) break;
    tile -= tiles;
  }
  const int batch = work.slice / args.heads;
  return {panel, tile * query_rows(kConfig), work.slice - batch * args.heads, batch};
}

template <AttentionConfig kConfig>
class AttentionProducer {
 public:
  HP_DEVICE AttentionProducer(const AttentionArgs& args, AttentionShared<kConfig> shared)
      : args_(args), shared_(shared), sync_(shared.sync()), waiter_(args.wait) {}

  // `tile`: the block's first query tile; the following ones are drawn.
  HP_DEVICE void run(QueryTile tile) {
    const int blocks = static_cast<int>(gridDim.x) - args_.copy_blocks;
    const int total = args_.tiles * args_.slices;
    for (;;) {
      load_queries(tile);
      // The atomic is in flight while keys are loaded; its result is used with the last of them.
      const int drawn = static_cast<int>(atomicAdd(args_.ticket, 1U));
      set_slice(tile);
      load_keys_and_values(blocks + drawn);
      // Each block draws until its ticket is beyond the end, so there are `total` draws in all. The
      // last one resets the counter for the next launch.
      if (drawn == total - 1) store_relaxed_system(args_.ticket, 0);
      if (blocks + drawn >= total) return;
      tile = query_tile<kConfig>(args_, blocks + drawn);
    }
  }

 private:
  // While the flag is down, the block counts as idle once the last loaded keys are released; their
  // values are not loaded yet.
  HP_DEVICE void wait(const FlagWait& ready, int index) {
    waiter_.wait(ready, index, [this] {
      const auto last = keys_.before();
      return is_over(&sync_.key_empty[last.slot], last.parity);
    });
  }

  HP_DEVICE void load_queries(const QueryTile& tile) {
    constexpr int kBoxes = kConfig.query_dim / kBoxColumns;
    const AttentionPanel& panel = args_.panels[tile.panel];
    const int slot = tiles_ % kConfig.query_stages;
    const int batch = tile.batch / args_.parts;
    wait(panel.ready, kMaxAttentionChunks + tile.panel);
    wait_barrier(&sync_.query_empty[slot], tiles_ / kConfig.query_stages % 2 ^ 1);
    sync_.tiles[tiles_ % kQueryTiles] = tile;
    ++tiles_;
    Barrier* const full = &sync_.query_full[slot];
    arrive_expecting(full, query_bytes(kConfig));
#pragma unroll
    for (int group = 0; group < kConfig.consumers; ++group) {
      std::uint8_t* const to = shared_.queries(slot, group);
#pragma unroll
      for (int box = 0; box < kBoxes; ++box) {
        load_tile(to + box * shared_.kQueryBox, &panel.queries, full, box * kBoxColumns, tile.head,
                  tile.row + group * kRowsOfWarpgroup, batch);
      }
    }
  }

  HP_DEVICE void set_slice(const QueryTile& tile) {
    const AttentionPanel& panel = args_.panels[tile.panel];
    const int rows = smaller(query_rows(kConfig), panel.rows - tile.row);
    const int first = panel.position + tile.row;
    sync_.slice = {{args_.mask, {first, first + rows - 1}, args_.chunk_count, kConfig.kv_tile},
                   tile.head / args_.heads_per_kv_head,
                   tile.batch};
  }

  HP_DEVICE int flags_of_last(int next_ticket) const {
    const bool more = next_ticket < args_.tiles * args_.slices;
    return more ? KvStep::kLast : KvStep::kLast | KvStep::kFinal;
  }

  // Values are loaded one tile behind their keys, which is the order of use.
  HP_DEVICE void load_keys_and_values(int next_ticket) {
    KvWalk walk(args_.extents, sync_.slice.view);
    for (int chunk = -1, row = 0;;) {
      const bool more = !walk.done();
      int next_chunk = 0;
      int next_row = 0;
      if (more) {
        if (walk.chunk() >= 0) wait(args_.chunks[walk.chunk()].ready, walk.chunk());
        const KvTile keys = walk.tile();
        next_chunk = keys.chunk;
        next_row = keys.row;
        walk.advance();
        load_keys(keys, walk.done() ? flags_of_last(next_ticket) : 0);
      }
      if (chunk >= 0) load_values(chunk, row);
      if (!more) return;
      chunk = next_chunk;
      row = next_row;
    }
  }

  HP_DEVICE void load_keys(const KvTile& tile, int flags) {
    const AttentionChunk& chunk = args_.chunks[tile.chunk];
    wait_barrier(&sync_.key_empty[keys_.slot], keys_.parity ^ 1);
    flags |= (tile.masked ? KvStep::kMasked : 0) | (waiter_.poisoned() ? KvStep::kPoisoned : 0);
    sync_.steps[keys_.slot] = {tile.position, tile.columns, flags, 0};
    Barrier* const full = &sync_.key_full[keys_.slot];
    arrive_expecting(full, key_bytes(kConfig));
    std::uint8_t* const to = shared_.keys(keys_.slot);
#pragma unroll
    for (int box = 0; box < kConfig.query_dim / kBoxColumns; ++box) {
      load_tile(to + box * shared_.kKvBox, &chunk.keys, full, box * kBoxColumns, sync_.slice.head,
                tile.row, sync_.slice.batch);
    }
    keys_.advance();
  }

  HP_DEVICE void load_values(int chunk, int row) {
    wait_barrier(&sync_.value_empty[values_.slot], values_.parity ^ 1);
    Barrier* const full = &sync_.value_full[values_.slot];
    arrive_expecting(full, value_bytes(kConfig));
    std::uint8_t* const to = shared_.values(values_.slot);
#pragma unroll
    for (int box = 0; box < kConfig.value_dim / kBoxColumns; ++box) {
      load_tile(to + box * shared_.kKvBox, &args_.chunks[chunk].values, full, box * kBoxColumns,
                sync_.slice.head, row, sync_.slice.batch);
    }
    values_.advance();
  }

  const AttentionArgs& args_;
  AttentionShared<kConfig> shared_;
  AttentionSync& sync_;
  Waiter waiter_;
  Ring<kConfig.kv_stages> keys_;
  Ring<kConfig.kv_stages> values_;
  std::uint32_t tiles_ = 0;  // loaded so far
};

}  // namespace harpe::device
