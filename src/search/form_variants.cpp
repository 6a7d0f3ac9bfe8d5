#include "search/form_variants.h"

#include <algorithm>
#include <array>

#include "ir/text.h"

namespace harpe {
namespace {

// How a buffer moves, as opposed to what moves where, and in which chunks.
struct Manner {
  How how = How::Bulk;
  std::optional<Initiator> by;
  std::optional<std::int64_t> depth;
  Via via = Via::Nccl;
  std::optional<Signal> signal;
};

constexpr std::array kManners = {
    Manner{How::Bulk, std::nullopt, std::nullopt, Via::Nccl, std::nullopt},
    Manner{How::Direct, Initiator::Dst, std::nullopt, Via::Ce, Signal::Event},
    Manner{How::Direct, Initiator::Src, std::nullopt, Via::Ce, Signal::Flag},
    Manner{How::Direct, Initiator::Src, std::nullopt, Via::Sm, Signal::Counter},
    Manner{How::Direct, Initiator::Src, std::nullopt, Via::Tma, Signal::Flag},
    Manner{How::Direct, Initiator::Dst, 2, Via::Ce, Signal::Event},
    Manner{How::Direct, Initiator::Dst, 3, Via::Ce, Signal::Event},
};

bool crosses_network(const Move& move) { return move.via == Via::Proxy || move.via == Via::Ibgda; }

bool goes_alike(const Move& a, const Move& b) {
  Move other = b;
  other.buffer = a.buffer;
  return a == other;
}

std::string describe(const Move& move, const Manner& manner) {
  std::string out =
      move.buffer + " over " + print_mesh_ref(move.over) + ": " + std::string(print(manner.how));
  if (manner.by) out += " by " + std::string(print(*manner.by));
  if (manner.depth) out += " depth " + std::to_string(*manner.depth);
  return out + " via " + std::string(print(manner.via));
}

// The indices of the item and of the following moves of the same kind, up to the next other item.
std::vector<std::size_t> alike_moves_from(const NestForm& nest, std::size_t item) {
  const auto& first = std::get<Move>(nest.items[item]);
  std::vector<std::size_t> group;
  for (std::size_t i = item; i < nest.items.size(); ++i) {
    const auto* move = std::get_if<Move>(&nest.items[i]);
    if (move == nullptr) break;
    if (goes_alike(first, *move)) group.push_back(i);
  }
  return group;
}

void go(Move& move, const Manner& manner) {
  move.how = manner.how;
  move.by = manner.by;
  move.depth = manner.depth;
  move.via = manner.via;
  move.signal = manner.signal;
  if (manner.how == How::Bulk) move.chunk = std::nullopt;
}

}  // namespace

std::vector<FormVariant> variants_of(const NormalForm& form) {
  std::vector<FormVariant> found;
  for (std::size_t n = 0; n < form.nests.size(); ++n) {
    const NestForm& nest = form.nests[n];
    for (std::size_t i = 0; i < nest.items.size(); ++i) {
      const auto* move = std::get_if<Move>(&nest.items[i]);
      if (move == nullptr || move->how == How::Inline || crosses_network(*move)) continue;
      const std::vector<std::size_t> group = alike_moves_from(nest, i);
      const bool led = i > 0 && std::holds_alternative<Move>(nest.items[i - 1]) &&
                       goes_alike(std::get<Move>(nest.items[i - 1]), *move);
      if (led) continue;  // changed together with the previous move
      for (const Manner& manner : kManners) {
        FormVariant variant{form, describe(*move, manner)};
        for (const std::size_t at : group) {
          go(std::get<Move>(variant.form.nests[n].items[at]), manner);
        }
        if (variant.form != form) found.push_back(std::move(variant));
      }
    }
  }
  return found;
}

std::vector<FormVariant> fence_variants_of(const NormalForm& form, const Machine& machine) {
  const bool counts = std::ranges::any_of(
      machine.levels, [](const MachineLevel& level) { return level.proxy_count.value > 0; });
  std::vector<FormVariant> found;
  for (const Fence fence : {Fence::PerPut, Fence::PerDestination, Fence::NicOrdered, Fence::Batched,
                            Fence::OneQuiet, Fence::Immediate}) {
    if (fence == Fence::Immediate && !counts) continue;
    FormVariant variant{form, "fence " + std::string(print(fence))};
    for (NestForm& nest : variant.form.nests) {
      for (NestItem& item : nest.items) {
        auto* const move = std::get_if<Move>(&item);
        if (move != nullptr && move->via == Via::Proxy) move->fence = fence;
      }
    }
    if (variant.form != form) found.push_back(std::move(variant));
  }
  return found;
}

}  // namespace harpe
