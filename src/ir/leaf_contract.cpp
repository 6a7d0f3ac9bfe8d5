#include "ir/leaf_contract.h"

#include <algorithm>
#include <array>

namespace harpe {
namespace {

constexpr LeafContract pointwise(std::string_view name, int operands) {
  return {.name = name,
          .operands = operands,
          .targets = 1,
          .monoid = Monoid::Store,
          .takes_masks = false,
          .remote_operands = false,
          .remote_targets = false,
          .chunkable = false,
          .pointwise = true};
}

constexpr std::array kContracts = {
    LeafContract{.name = "matmul",
                 .operands = 2,
                 .targets = 1,
                 .monoid = Monoid::Sum,
                 .takes_masks = false,
                 .remote_operands = true,
                 .remote_targets = true,
                 .chunkable = true},
    LeafContract{.name = "attn_fwd",
                 .operands = 3,
                 .targets = 2,
                 .monoid = Monoid::Lse,
                 .takes_masks = true,
                 .remote_operands = false,
                 .remote_targets = false,
                 .chunkable = true,
                 .sums = LeafContract::kOwnSums},
    LeafContract{.name = "attn_bwd",
                 .operands = 6,
                 .targets = 3,
                 .monoid = Monoid::Sum,
                 .takes_masks = true,
                 .remote_operands = false,
                 .remote_targets = false,
                 .chunkable = false,
                 .sums = 4},
    LeafContract{.name = "rowdot",
                 .operands = 2,
                 .targets = 1,
                 .monoid = Monoid::Store,
                 .takes_masks = false,
                 .remote_operands = false,
                 .remote_targets = false,
                 .chunkable = false},
    LeafContract{.name = "copy",
                 .operands = 1,
                 .targets = 1,
                 .monoid = Monoid::Store,
                 .takes_masks = false,
                 .remote_operands = true,
                 .remote_targets = true,
                 .chunkable = true},
    pointwise("silu", 1),
    pointwise("relu", 1),
    pointwise("gelu", 1),
    pointwise("add", 2),
    pointwise("mul", 2),
    pointwise("silu_mul", 2),
    pointwise("rms_scale", 2),
    LeafContract{.name = "topk",
                 .operands = 1,
                 .targets = 2,
                 .monoid = Monoid::Store,
                 .takes_masks = false,
                 .remote_operands = false,
                 .remote_targets = false,
                 .chunkable = false},
    LeafContract{.name = "limit_choices",
                 .operands = 1,
                 .targets = 1,
                 .monoid = Monoid::Store,
                 .takes_masks = false,
                 .remote_operands = false,
                 .remote_targets = false,
                 .chunkable = false},
    LeafContract{.name = "gather_rows",
                 .operands = 2,
                 .targets = 1,
                 .monoid = Monoid::Store,
                 .takes_masks = false,
                 .remote_operands = false,
                 .remote_targets = false,
                 .chunkable = false,
                 .index = 1},
    LeafContract{.name = "combine_rows",
                 .operands = 3,
                 .targets = 1,
                 .monoid = Monoid::Sum,
                 .takes_masks = false,
                 .remote_operands = false,
                 .remote_targets = false,
                 .chunkable = false,
                 .index = 1},
};

}  // namespace

std::span<const LeafContract> all_leaf_contracts() { return kContracts; }

const LeafContract* find_leaf_contract(std::string_view name) {
  const auto found = std::ranges::find(kContracts, name, &LeafContract::name);
  return found == kContracts.end() ? nullptr : &*found;
}

}  // namespace harpe
