#include "exec/cuda/target/collectives.h"

#include <algorithm>
#include <utility>

#include "exec/actions/prepare.h"
#include "support/check.h"

namespace harpe::cuda {
namespace {

using Kind = library::NcclCall::Kind;

// Distance of the arenas in which offsets are computed: nothing is read or written there.
constexpr std::int64_t kArena = std::int64_t{1} << 44;

std::int64_t offset_of(const std::byte* data) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data)) % kArena;
}

// Requires: the moves are one contiguous run of bytes on both sides.
Piece piece_of(const std::vector<actions::Action>& moves) {
  std::vector<Piece> pieces;
  for (const actions::Action& action : moves) {
    const auto* const move = std::get_if<actions::Assign>(&action);
    HP_CHECK(move != nullptr && move->rows.loops().empty(), "a part of an exchange is one run");
    pieces.push_back({.from = offset_of(move->from.data),
                      .to = offset_of(move->to.data),
                      .bytes = move->rows.length() * size_in_bytes(move->to.dtype)});
  }
  std::ranges::sort(pieces, {}, &Piece::from);
  Piece whole = pieces.front();
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    const bool is_next =
        pieces[i].from == whole.from + whole.bytes && pieces[i].to == whole.to + whole.bytes;
    HP_CHECK(is_next, "a part of an exchange is one run");
    whole.bytes += pieces[i].bytes;
  }
  return whole;
}

class Binder {
 public:
  Binder(const Plan& plan, const Blocks& blocks)
      : plan_(plan), blocks_(blocks), layouts_(plan, blocks) {
    for (std::int64_t rank = 0; rank < plan.mesh.ranks(); ++rank) {
      bases_.arenas.push_back(reinterpret_cast<std::byte*>(kArena * (rank + 1)));
    }
  }

  [[nodiscard]] Traffic bind(const launch::Exchange& exchange, CollectiveOp operation) {
    const std::size_t members = exchange.members.size();
    Traffic traffic;
    traffic.sums = exchange.sums;
    traffic.pieces.assign(members, std::vector<std::optional<Piece>>(members));
    const auto number = [&](RankId rank) {
      return static_cast<std::size_t>(std::ranges::find(exchange.members, rank) -
                                      exchange.members.begin());
    };
    for (const launch::ExchangePart& part : exchange.parts) {
      traffic.pieces[number(part.from)][number(part.to)] = piece_of(moves_of(part));
    }
    if (operation == CollectiveOp::AllGather && is_all_gather(traffic)) {
      traffic.kind = Kind::AllGather;
    }
    return traffic;
  }

 private:
  [[nodiscard]] std::vector<actions::Action> moves_of(const launch::ExchangePart& part) {
    const actions::Occupancy occupancy(plan_, blocks_, bases_.arenas);
    const actions::Scratch scratch;
    const actions::Setting setting{.plan = plan_,
                                   .blocks = blocks_,
                                   .layouts = layouts_,
                                   .bases = bases_,
                                   .occupancy = occupancy,
                                   .scratch = scratch};
    Task copy;
    copy.kind = TaskKind::Copy;
    copy.reads = {part.source};
    copy.writes = {part.destination};
    return actions::prepare_moves(setting, copy).actions;
  }

  // Whether every rank sends the same part to all, and parts end up in the team's order.
  [[nodiscard]] static bool is_all_gather(const Traffic& traffic) {
    const auto& pieces = traffic.pieces;
    if (!pieces[0][0]) return false;
    const std::int64_t bytes = pieces[0][0]->bytes;
    for (std::size_t from = 0; from < pieces.size(); ++from) {
      for (std::size_t to = 0; to < pieces.size(); ++to) {
        const std::optional<Piece>& piece = pieces[from][to];
        if (!piece || piece->bytes != bytes || piece->from != pieces[from][from]->from ||
            piece->to != pieces[0][to]->to + static_cast<std::int64_t>(from) * bytes) {
          return false;
        }
      }
    }
    return true;
  }

  const Plan& plan_;
  const Blocks& blocks_;
  launch::RefLayouts layouts_;
  actions::Bases bases_;
};

// Bytes that only move, as elements of two bytes.
library::Elements moved(DeviceAddress arena, std::int64_t offset, std::int64_t bytes) {
  return {.address = arena + static_cast<DeviceAddress>(offset),
          .count = bytes / 2,
          .type = device::Element::BF16};
}

}  // namespace

CollectiveChoice bind_exchanges(const Plan& plan, const Blocks& blocks,
                                const launch::Exchanges& exchanges) {
  CollectiveChoice choice{.teams = {}, .by_nccl = {}, .by_pulls = exchanges.by_pulls};
  Binder binder(plan, blocks);
  for (const auto& [group, exchange] : exchanges.by_library) {
    const auto task = std::ranges::find_if(plan.tasks, [&](const Task& one) {
      return one.kind == TaskKind::Collective && one.group == group;
    });
    const auto known = std::ranges::find(choice.teams, exchange.members);
    Traffic traffic = binder.bind(exchange, task->collective);
    traffic.team = static_cast<std::size_t>(known - choice.teams.begin());
    if (known == choice.teams.end()) choice.teams.push_back(exchange.members);
    choice.by_nccl.emplace(group, std::move(traffic));
  }
  return choice;
}

library::NcclCall call_of(const Traffic& traffic, const library::NcclRank* rank, std::size_t member,
                          DeviceAddress arena) {
  library::NcclCall call{.rank = rank, .kind = traffic.kind, .part = {}};
  const auto& pieces = traffic.pieces;
  if (traffic.kind == Kind::AllGather) {
    const Piece& own = *pieces[member][member];
    call.part = moved(arena, own.from, own.bytes);
    call.whole = arena + static_cast<DeviceAddress>(pieces[0][member]->to);
    return call;
  }
  for (std::size_t peer = 0; peer < pieces.size(); ++peer) {
    const int number = static_cast<int>(peer);
    if (const auto& sent = pieces[member][peer]) {
      call.sends.push_back({.peer = number, .elements = moved(arena, sent->from, sent->bytes)});
    }
    if (const auto& got = pieces[peer][member]) {
      call.receives.push_back({.peer = number, .elements = moved(arena, got->to, got->bytes)});
    }
  }
  return call;
}

std::vector<CollectiveUse> uses_of(const Plan& plan, const CollectiveChoice& choice,
                                   const std::string& nccl) {
  std::vector<CollectiveUse> uses;
  for (const Task& task : plan.tasks) {
    if (task.kind != TaskKind::Collective) continue;
    const auto pulled = choice.by_pulls.find(task.group);
    const bool is_pulled = pulled != choice.by_pulls.end();
    CollectiveUse use{.operation = task.collective,
                      .engine = is_pulled ? "pull" : nccl,
                      .reason = is_pulled ? pulled->second : ""};
    auto known = std::ranges::find_if(uses, [&](const CollectiveUse& one) {
      return one.operation == use.operation && one.engine == use.engine && one.reason == use.reason;
    });
    if (known == uses.end()) known = uses.insert(uses.end(), std::move(use));
    ++known->count;
    known->bytes += task.bytes;
  }
  return uses;
}

}  // namespace harpe::cuda
