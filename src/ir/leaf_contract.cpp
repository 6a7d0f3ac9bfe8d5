#include "ir/leaf_contract.h"

#include <algorithm>
#include <array>

namespace harpe {
namespace {

// A leaf without masks, whose kernels take whole operands on their own rank.
constexpr LeafContract plain(std::string_view name, int operands, int targets, Monoid monoid) {
  return {.name = name,
          .operands = operands,
          .targets = targets,
          .monoid = monoid,
          .takes_masks = false,
          .remote_operands = false,
          .remote_targets = false,
          .chunkable = false};
}

constexpr LeafContract pointwise(std::string_view name, int operands) {
  LeafContract leaf = plain(name, operands, 1, Monoid::Store);
  leaf.pointwise = true;
  return leaf;
}

// Moves elements of any type, or compares indices.
constexpr LeafContract moving(LeafContract leaf) {
  leaf.computes = false;
  return leaf;
}

constexpr LeafContract choosing(LeafContract leaf) {
  leaf.choices = 0;
  return leaf;
}

constexpr LeafContract routed(std::string_view name, int operands, Monoid monoid) {
  LeafContract leaf = plain(name, operands, 1, monoid);
  leaf.index = 1;
  return leaf;
}

constexpr std::array kLeafContracts = {
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
    plain("rowdot", 2, 1, Monoid::Store),
    LeafContract{.name = "copy",
                 .operands = 1,
                 .targets = 1,
                 .monoid = Monoid::Store,
                 .takes_masks = false,
                 .remote_operands = true,
                 .remote_targets = true,
                 .chunkable = true,
                 .computes = false},
    pointwise("silu", 1),
    pointwise("relu", 1),
    pointwise("gelu", 1),
    pointwise("add", 2),
    pointwise("mul", 2),
    pointwise("silu_mul", 2),
    pointwise("rms_scale", 2),
    choosing(plain("topk", 1, 2, Monoid::Store)),
    moving(plain("limit_choices", 1, 1, Monoid::Store)),
    moving(routed("gather_rows", 2, Monoid::Store)),
    routed("combine_rows", 3, Monoid::Sum),
};

}  // namespace

std::span<const LeafContract> all_leaf_contracts() { return kLeafContracts; }

const LeafContract* find_leaf_contract(std::string_view name) {
  const auto found = std::ranges::find(kLeafContracts, name, &LeafContract::name);
  return found == kLeafContracts.end() ? nullptr : &*found;
}

}  // namespace harpe
