#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "exec/cuda/kernels/attention/head_tensor.h"
#include "exec/cuda/kernels/loop_nests.h"

// What plans of attention forward and backward on tensor cores have in common.
namespace harpe::cuda {

// Loops as the tensor-core kernels walk them; steps are in bytes.
template <std::size_t kOperands>
struct Heads {
  actions::Loop<kOperands> batch;
  actions::Loop<kOperands> heads;     // of operands with the queries' heads
  actions::Loop<kOperands> kv_heads;  // of operands with the keys' heads
};

// None if the loops are not a batch, key heads, and query heads that share a key head.
template <std::size_t kOperands>
[[nodiscard]] std::optional<Heads<kOperands>> heads_of(Loops<kOperands> loops,
                                                       std::span<const std::size_t> of_queries,
                                                       std::span<const std::size_t> of_keys) {
  using Loop = actions::Loop<kOperands>;
  Heads<kOperands> result;
  const auto shares = [&](const Loop& loop) {
    return std::ranges::all_of(of_keys, [&](std::size_t i) { return loop.bytes[i] == 0; });
  };
  // Whether a step of `outer` continues a whole turn of the group in the queries' operands.
  const auto continues = [&](const Loop& outer) {
    return std::ranges::all_of(of_queries, [&](std::size_t i) {
      return outer.bytes[i] == result.heads.bytes[i] * result.heads.length;
    });
  };
  if (const auto group = std::ranges::find_if(loops, shares); group != loops.end()) {
    result.heads = *group;
    loops.erase(group);
    if (std::ranges::any_of(loops, shares)) return std::nullopt;
  }
  const auto kv = std::ranges::find_if(loops, continues);
  if (result.heads.length > 1 && kv != loops.end()) {
    result.kv_heads = *kv;
    result.heads.length *= kv->length;
    loops.erase(kv);
  } else if (result.heads.length == 1 && !loops.empty()) {
    result.heads = result.kv_heads = loops.back();
    loops.pop_back();
  }
  if (loops.size() > 1) return std::nullopt;
  if (!loops.empty()) result.batch = loops.front();
  return result;
}

// The operand whose first head is `first`.
template <std::size_t kOperands>
[[nodiscard]] HeadTensor tensor_of(const MatrixView& first, const actions::Loop<kOperands>& batch,
                                   const actions::Loop<kOperands>& heads, std::size_t operand) {
  const std::int64_t size = size_in_bytes(first.dtype);
  return {.address = address_of(first.data),
          .strides = {.batch = batch.bytes[operand] / size,
                      .row = first.row_stride,
                      .head = heads.bytes[operand] / size}};
}

}  // namespace harpe::cuda
