#include "bench/cuda/attention_shapes.h"

#include <fmt/format.h>

#include <algorithm>

namespace harpe::bench {
namespace {

constexpr std::int64_t kRanks = 8;

struct Heads {
  std::int64_t kv_heads;
  std::int64_t dim;
  bool causal;
};

AttentionCase shape(std::int64_t rows, std::int64_t keys, const Heads& heads) {
  AttentionCase made;
  made.rows = rows;
  made.keys = keys;
  made.heads = 32;
  made.kv_heads = heads.kv_heads;
  made.query_dim = heads.dim;
  made.value_dim = heads.dim;
  made.causal = heads.causal;
  made.first_position = keys - rows;
  made.packed = true;
  leave_whole(made);
  made.name = fmt::format("S {} d {} 32/{} {}", keys, heads.dim, heads.kv_heads,
                          heads.causal ? "causal" : "full");
  return made;
}

std::vector<RowRange> eighths(std::int64_t size) {
  std::vector<RowRange> ranges;
  for (std::int64_t rank = 0; rank < kRanks; ++rank) {
    const std::int64_t begin = size * rank / kRanks;
    ranges.push_back({.begin = begin, .rows = size * (rank + 1) / kRanks - begin});
  }
  return ranges;
}

}  // namespace

std::vector<AttentionCase> attention_shapes() {
  std::vector<AttentionCase> all;
  for (const std::int64_t dim : {128, 64}) {
    for (const std::int64_t kv_heads : {8, 32}) {
      for (const bool causal : {false, true}) {
        for (const std::int64_t rows : {2048, 8192, 16384}) {
          all.push_back(shape(rows, rows, {.kv_heads = kv_heads, .dim = dim, .causal = causal}));
        }
      }
    }
  }
  return all;
}

std::vector<AttentionCase> attention_shares() {
  std::vector<AttentionCase> all;
  for (const std::int64_t kv_heads : {8, 32}) {
    for (const bool causal : {false, true}) {
      for (const std::int64_t keys : {8192, 16384, 32768, 65536}) {
        AttentionCase share =
            shape(keys / kRanks, keys, {.kv_heads = kv_heads, .dim = 128, .causal = causal});
        cut_keys(share);
        std::ranges::rotate(share.chunks, share.chunks.end() - 1);
        share.name = "share of " + share.name;
        all.push_back(std::move(share));
      }
    }
  }
  return all;
}

void cut_keys(AttentionCase& what) { what.chunks = eighths(what.keys); }

void cut_queries(AttentionCase& what) { what.panels = eighths(what.rows); }

AttentionCase one_query(std::int64_t batch, std::int64_t keys, std::int64_t kv_heads,
                        std::int64_t group, std::int64_t dim) {
  AttentionCase made;
  made.batch = batch;
  made.rows = 1;
  made.keys = keys;
  made.heads = kv_heads * group;
  made.kv_heads = kv_heads;
  made.query_dim = made.value_dim = dim;
  made.first_position = keys - 1;
  made.packed = true;
  leave_whole(made);
  return made;
}

AttentionCase one_latent_query(std::int64_t batch, std::int64_t keys, std::int64_t kv_heads,
                               std::int64_t group) {
  AttentionCase made = one_query(batch, keys, kv_heads, group, 576);
  made.value_dim = 512;
  made.values_in_keys = true;
  return made;
}

}  // namespace harpe::bench
