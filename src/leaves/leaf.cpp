#include "leaves/leaf.h"

#include <algorithm>
#include <array>

namespace harpe {
namespace {

constexpr WorkShape kProduct{.both = WorkPart::Batch,
                             .first = WorkPart::Rows,
                             .second = WorkPart::Columns,
                             .neither = WorkPart::Columns,
                             .summed = WorkPart::Depth};

constexpr WorkShape kScores{.both = WorkPart::Batch,
                            .first = WorkPart::Batch,
                            .second = WorkPart::Columns,
                            .neither = WorkPart::Batch,
                            .has_positions = true};

constexpr LeafContract pointwise(Leaf leaf, std::string_view name, int operands) {
  return {.leaf = leaf,
          .name = name,
          .operands = operands,
          .targets = 1,
          .monoid = Monoid::Store,
          .pointwise = true};
}

constexpr std::array kLeafContracts = {
    LeafContract{.leaf = Leaf::Matmul,
                 .name = "matmul",
                 .operands = 2,
                 .targets = 1,
                 .monoid = Monoid::Sum,
                 .work = kProduct},
    LeafContract{.leaf = Leaf::AttentionForward,
                 .name = "attn_fwd",
                 .operands = 3,
                 .targets = 2,
                 .monoid = Monoid::Lse,
                 .takes_masks = true,
                 .sums = LeafContract::kOwnSums,
                 .work = kScores},
    LeafContract{.leaf = Leaf::AttentionBackward,
                 .name = "attn_bwd",
                 .operands = 6,
                 .targets = 3,
                 .monoid = Monoid::Sum,
                 .takes_masks = true,
                 .sums = 4,
                 .work = kScores},
    LeafContract{.leaf = Leaf::RowDot,
                 .name = "rowdot",
                 .operands = 2,
                 .targets = 1,
                 .monoid = Monoid::Store},
    LeafContract{.leaf = Leaf::Copy,
                 .name = "copy",
                 .operands = 1,
                 .targets = 1,
                 .monoid = Monoid::Store,
                 .computes = false,
                 .moves = true},
    pointwise(Leaf::Silu, "silu", 1),
    pointwise(Leaf::Relu, "relu", 1),
    pointwise(Leaf::Gelu, "gelu", 1),
    pointwise(Leaf::Add, "add", 2),
    pointwise(Leaf::Mul, "mul", 2),
    pointwise(Leaf::SiluMul, "silu_mul", 2),
    pointwise(Leaf::RmsScale, "rms_scale", 2),
    LeafContract{.leaf = Leaf::AddRmsNorm,
                 .name = "add_rms_norm",
                 .operands = 3,
                 .targets = 2,
                 .monoid = Monoid::Store},
    LeafContract{.leaf = Leaf::TopK,
                 .name = "topk",
                 .operands = 1,
                 .targets = 2,
                 .monoid = Monoid::Store,
                 .choices = 0},
    LeafContract{.leaf = Leaf::LimitChoices,
                 .name = "limit_choices",
                 .operands = 1,
                 .targets = 1,
                 .monoid = Monoid::Store,
                 .computes = false},
    LeafContract{.leaf = Leaf::GatherRows,
                 .name = "gather_rows",
                 .operands = 2,
                 .targets = 1,
                 .monoid = Monoid::Store,
                 .index = 1,
                 .computes = false,
                 .moves = true},
    LeafContract{.leaf = Leaf::CombineRows,
                 .name = "combine_rows",
                 .operands = 3,
                 .targets = 1,
                 .monoid = Monoid::Sum,
                 .index = 1},
};

static_assert(
    [] {
      for (std::size_t i = 0; i < kLeafContracts.size(); ++i) {
        if (kLeafContracts[i].leaf != static_cast<Leaf>(i)) return false;
      }
      return true;
    }(),
    "the table is in the order of Leaf");

}  // namespace

std::span<const LeafContract> all_leaf_contracts() { return kLeafContracts; }

const LeafContract* find_leaf_contract(std::string_view name) {
  const auto found = std::ranges::find(kLeafContracts, name, &LeafContract::name);
  return found == kLeafContracts.end() ? nullptr : &*found;
}

std::string_view print(Leaf leaf) { return kLeafContracts.at(static_cast<std::size_t>(leaf)).name; }

bool is_leaf(std::string_view name, Leaf leaf) { return name == print(leaf); }

}  // namespace harpe
