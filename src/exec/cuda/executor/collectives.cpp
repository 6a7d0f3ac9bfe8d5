#include "exec/cuda/executor/collectives.h"

#include <algorithm>
#include <set>
#include <utility>

#include "exec/actions/prepare.h"
#include "exec/describe.h"

namespace harpe::cuda {
namespace {

using Kind = library::NcclCall::Kind;

// From so many bytes on that a rank takes from others NCCL is faster than pulls (docs/gpu.md): of
// all-gathers, and of sums that are rounded on their way, which pulls take unrounded.
constexpr std::int64_t kLeastGathered = std::int64_t{64} << 20;
constexpr std::int64_t kLeastRounded = std::int64_t{16} << 20;

// Arenas as far apart as offsets are looked for: nothing is read or written there.
constexpr std::int64_t kArena = std::int64_t{1} << 44;

std::int64_t offset_of(const std::byte* data) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data)) % kArena;
}

// The moves as one piece; none where one of them is more, or does not continue the one before.
std::optional<Piece> piece_of(const std::vector<actions::Action>& moves) {
  std::vector<Piece> pieces;
  for (const actions::Action& action : moves) {
    const auto* const move = std::get_if<actions::Assign>(&action);
    if (move == nullptr || move->to.dtype != move->from.dtype || move->slots.used.rows != nullptr ||
        !move->rows.loops().empty()) {
      return std::nullopt;
    }
    pieces.push_back({.from = offset_of(move->from.data),
                      .to = offset_of(move->to.data),
                      .bytes = move->rows.length() * size_in_bytes(move->to.dtype)});
  }
  if (pieces.empty()) return std::nullopt;
  std::ranges::sort(pieces, {}, &Piece::from);
  Piece whole = pieces.front();
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    if (pieces[i].from != whole.from + whole.bytes || pieces[i].to != whole.to + whole.bytes) {
      return std::nullopt;
    }
    whole.bytes += pieces[i].bytes;
  }
  if (whole.bytes % 2 != 0) return std::nullopt;  // NCCL is given words of two bytes
  return whole;
}

// A copy of blocks from one allocation to another, by the taker or giver that `like` is of.
Task copy_like(const Task& like, const Ref& from, const Ref& to) {
  Task copy;
  copy.queue = like.queue;
  copy.kind = TaskKind::Copy;
  copy.reads = {from};
  copy.writes = {to};
  return copy;
}

class Chooser {
 public:
  Chooser(Plan& plan, const Blocks& blocks, const CollectiveRules& rules)
      : plan_(plan), blocks_(blocks), rules_(rules), boxes_at_(arena_bytes(plan)) {
    for (std::int64_t rank = 0; rank < plan.mesh.ranks(); ++rank) {
      bases_.arenas.push_back(reinterpret_cast<std::byte*>(kArena * (rank + 1)));
    }
  }

  CollectiveChoice choose() {
    std::map<std::int32_t, std::vector<TaskId>> groups;
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
      if (plan_.tasks[i].kind != TaskKind::Collective) continue;
      groups[plan_.tasks[i].group].emplace_back(static_cast<std::int64_t>(i));
    }
    const std::string for_all = reason_for_all(groups);
    for (auto& [group, members] : groups) {
      std::ranges::sort(members, {}, [&](TaskId task) { return rank_of(plan_, task); });
      std::string reason = for_all.empty() ? reason_against(members) : for_all;
      if (reason.empty() && !add(group, members)) reason = "parts in several pieces";
      if (!reason.empty()) choice_.by_pulls[group] = std::move(reason);
    }
    return std::move(choice_);
  }

 private:
  [[nodiscard]] const Task& task(TaskId id) const { return plan_.tasks[id.index()]; }

  // NCCL's kernels of a rank run one after the other in an order that all ranks share: that of a
  // queue, whose groups a verified plan has in one order on all ranks.
  [[nodiscard]] std::string reason_for_all(
      const std::map<std::int32_t, std::vector<TaskId>>& groups) const {
    if (rules_.engine == CollectiveEngine::Pull) return "as asked for";
    if (rules_.shares_gpus) return "ranks share GPUs, and NCCL wants one for each";
    if (rules_.waits_inside) {
      return "kernels that wait inside may hold the multiprocessors that NCCL needs";
    }
    std::map<RankId, std::set<QueueId>> queues;
    for (const auto& [group, members] : groups) {
      for (const TaskId member : members) queues[rank_of(plan_, member)].insert(task(member).queue);
    }
    const bool are_ordered =
        std::ranges::all_of(queues, [](const auto& rank) { return rank.second.size() == 1; });
    return are_ordered ? "" : "a rank's collectives are in several lanes";
  }

  [[nodiscard]] std::string reason_against(const std::vector<TaskId>& members) const {
    const Task& first = task(members.front());
    const bool sums = first.collective == CollectiveOp::ReduceScatter;
    if (sums && actions::statement_of(plan_, first).monoid != Monoid::Sum) {
      return "sums of several numbers at once";
    }
    if (rules_.engine != CollectiveEngine::Auto) return "";
    if (first.collective == CollectiveOp::AllGather) {
      return first.bytes < kLeastGathered ? "pulls are faster below 64 MiB" : "";
    }
    if (!sums || !is_rounded(first)) return "pulls are as fast";
    return first.bytes < kLeastRounded ? "pulls are faster below 16 MiB" : "";
  }

  [[nodiscard]] bool is_rounded(const Task& sum) const {
    return sum.wire && *sum.wire != plan_.allocs[sum.writes.front().alloc.index()].dtype;
  }

  // False where NCCL cannot.
  [[nodiscard]] bool add(std::int32_t group, const std::vector<TaskId>& members) {
    const bool sums = task(members.front()).collective == CollectiveOp::ReduceScatter;
    Team team;
    for (const TaskId member : members) team.push_back(rank_of(plan_, member));
    const std::size_t allocs = plan_.allocs.size();
    const std::optional<Traffic> found = sums ? sum(members, team) : move(members, team);
    if (!found) {
      plan_.allocs.resize(allocs);
      return false;
    }
    const auto known = std::ranges::find(choice_.teams, team);
    const auto place = static_cast<std::size_t>(known - choice_.teams.begin());
    if (known == choice_.teams.end()) choice_.teams.push_back(team);
    choice_.by_nccl.emplace(group, *found).first->second.team = place;
    return true;
  }

  // What every member takes from each.
  [[nodiscard]] std::optional<Traffic> move(const std::vector<TaskId>& members,
                                            const Team& team) const {
    Traffic traffic;
    traffic.pieces.assign(team.size(), std::vector<std::optional<Piece>>(team.size()));
    for (std::size_t to = 0; to < team.size(); ++to) {
      const Task& taker = task(members[to]);
      for (std::size_t i = 0; i < taker.reads.size(); ++i) {
        const auto from = giver(taker.reads[i], team);
        if (!from || !note(copy_like(taker, taker.reads[i], taker.writes[i]), *from, to, traffic)) {
          return std::nullopt;
        }
      }
    }
    const bool gathers = task(members.front()).collective == CollectiveOp::AllGather;
    if (gathers && is_all_gather(traffic)) traffic.kind = Kind::AllGather;
    return traffic;
  }

  // Every member has an inbox for each of the others, and outboxes where parts are rounded.
  [[nodiscard]] std::optional<Traffic> sum(const std::vector<TaskId>& members, const Team& team) {
    Traffic traffic;
    traffic.pieces.assign(team.size(), std::vector<std::optional<Piece>>(team.size()));
    traffic.sums.resize(team.size());
    std::vector<std::int64_t> ends(team.size(), boxes_at_);
    for (std::size_t to = 0; to < team.size(); ++to) {
      const Task taker = task(members[to]);
      Task& fold = traffic.sums[to].fold = taker;
      fold.kind = TaskKind::Fold;
      for (Ref& read : fold.reads) {
        const auto from = giver(read, team);
        if (!from) return std::nullopt;
        if (*from == to) continue;
        Ref given = read;
        read = box(taker, team[to], ends[to]);
        if (is_rounded(taker)) {
          const Ref out = box(taker, team[*from], ends[*from]);
          traffic.sums[*from].rounds.push_back(copy_like(task(members[*from]), given, out));
          given = out;
        }
        if (!note(copy_like(taker, given, read), *from, to, traffic)) return std::nullopt;
      }
    }
    return traffic;
  }

  [[nodiscard]] std::optional<std::size_t> giver(const Ref& ref, const Team& team) const {
    const auto found = std::ranges::find(team, plan_.allocs[ref.alloc.index()].rank);
    if (found == team.end()) return std::nullopt;
    return static_cast<std::size_t>(found - team.begin());
  }

  // Memory of a rank for what travels to the taker, behind all that the plan has there.
  [[nodiscard]] Ref box(const Task& taker, RankId rank, std::int64_t& end) {
    constexpr std::int64_t kAlign = 512;
    const Ref& sum = taker.writes.front();
    Alloc like = plan_.allocs[sum.alloc.index()];
    const DType wide = like.dtype;
    like.rank = rank;
    like.level = Level::Inbox;
    like.dtype = taker.wire.value_or(wide);
    like.bytes = like.bytes / size_in_bytes(wide) * size_in_bytes(like.dtype);
    like.offset = (end + kAlign - 1) / kAlign * kAlign;
    like.name += ".box" + std::to_string(like.offset);
    end = like.offset + like.bytes;
    plan_.allocs.push_back(std::move(like));
    Ref ref = sum;
    ref.alloc = AllocId(static_cast<std::int64_t>(plan_.allocs.size()) - 1);
    ref.mode = WriteMode::Set;
    return ref;
  }

  // False where it is not one piece, or a second one between the two.
  [[nodiscard]] bool note(const Task& copy, std::size_t from, std::size_t to,
                          Traffic& traffic) const {
    std::optional<Piece>& place = traffic.pieces[from][to];
    const std::optional<Piece> piece = piece_of(moves_of(copy));
    if (place || !piece) return false;
    place = piece;
    return true;
  }

  [[nodiscard]] std::vector<actions::Action> moves_of(const Task& copy) const {
    const actions::Occupancy occupancy(plan_, blocks_, bases_.arenas);
    const actions::Scratch scratch;
    const actions::Setting setting{.plan = plan_,
                                   .blocks = blocks_,
                                   .bases = bases_,
                                   .occupancy = occupancy,
                                   .scratch = scratch};
    return actions::prepare_moves(setting, copy).actions;
  }

  // Everyone gives the same to all, and parts come to lie in the team's order.
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

  Plan& plan_;
  const Blocks& blocks_;
  const CollectiveRules& rules_;
  std::int64_t boxes_at_;
  actions::Bases bases_;
  CollectiveChoice choice_;
};

// Bytes that are only moved, as elements of two.
library::Elements moved(DeviceAddress arena, std::int64_t offset, std::int64_t bytes) {
  return {.address = arena + static_cast<DeviceAddress>(offset),
          .count = bytes / 2,
          .type = device::Element::BF16};
}

}  // namespace

void CollectiveChoice::refuse_all(const std::string& reason) {
  for (const auto& [group, traffic] : by_nccl) by_pulls[group] = reason;
  by_nccl.clear();
  teams.clear();
}

CollectiveChoice choose_collectives(Plan& plan, const Blocks& blocks,
                                    const CollectiveRules& rules) {
  return Chooser(plan, blocks, rules).choose();
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
