#include <algorithm>
#include <map>

#include "verify/structure.h"
#include "verify/words.h"

namespace harpe::verifier {
namespace {

class GroupCheck {
 public:
  GroupCheck(const Plan& plan, const Model& model) : plan_(plan), words_(plan, model) {}

  Checked<Ok> check(std::int32_t group, const std::vector<std::size_t>& members) const {
    HP_REQUIRE_OK(check_members(group, members));
    std::vector<RankId> ranks;
    for (const std::size_t id : members) ranks.push_back(rank_of(id));
    std::ranges::sort(ranks);
    for (const std::size_t id : members) {
      for (const Ref& ref : plan_.tasks[id].reads) {
        const RankId rank = plan_.allocs[ref.alloc.index()].rank;
        if (std::ranges::binary_search(ranks, rank)) continue;
        return make_diag(DiagCode::V232, {{"task", name(id)},
                                          {"rank", rank.value},
                                          {"alloc", plan_.allocs[ref.alloc.index()].name},
                                          {"group", group}});
      }
      HP_REQUIRE_OK(check_refs(group, id));
    }
    if (plan_.tasks[members.front()].collective == CollectiveOp::AllGather) {
      return check_same_parts(group, members);
    }
    return Ok{};
  }

  Checked<Ok> check_grouped(std::size_t id) const {
    const Task& task = plan_.tasks[id];
    const bool collective = task.kind == TaskKind::Collective;
    if (collective == (task.group >= 0)) return Ok{};
    return bad(task.group, name(id) + (collective ? " belongs to no group" : " is no collective"));
  }

 private:
  [[nodiscard]] std::string name(std::size_t id) const {
    return words_.task(static_cast<std::int64_t>(id));
  }
  [[nodiscard]] RankId rank_of(std::size_t id) const {
    return words_.rank_of(static_cast<std::int64_t>(id));
  }
  [[nodiscard]] static Diag bad(std::int32_t group, const std::string& problem) {
    return make_diag(DiagCode::V231, {{"group", group}, {"problem", problem}});
  }

  [[nodiscard]] Checked<Ok> check_members(std::int32_t group,
                                          const std::vector<std::size_t>& members) const {
    const Task& first = plan_.tasks[members.front()];
    std::map<RankId, std::size_t> at;
    for (const std::size_t id : members) {
      const Task& task = plan_.tasks[id];
      if (task.collective != first.collective || task.nest != first.nest ||
          task.stmt != first.stmt) {
        return bad(group, name(members.front()) + " and " + name(id) + " are different operations");
      }
      const auto [twin, fresh] = at.emplace(rank_of(id), id);
      if (!fresh) {
        return bad(group, name(twin->second) + " and " + name(id) + " are members on one rank");
      }
    }
    return Ok{};
  }

  // Gathers and exchanges copy each read to the corresponding write. A reduction takes its sources
  // in ascending rank and leaves one partial state.
  [[nodiscard]] Checked<Ok> check_refs(std::int32_t group, std::size_t id) const {
    const Task& task = plan_.tasks[id];
    if (task.collective != CollectiveOp::ReduceScatter) {
      const bool paired =
          std::ranges::equal(task.reads, task.writes, [&](const Ref& a, const Ref& b) {
            return plan_.allocs[a.alloc.index()].buffer == plan_.allocs[b.alloc.index()].buffer &&
                   a.boxes == b.boxes;
          });
      return paired ? Checked<Ok>(Ok{})
                    : bad(group, name(id) + " does not write what it reads, part by part");
    }
    const bool ascending = std::ranges::is_sorted(
        task.reads, {}, [&](const Ref& ref) { return plan_.allocs[ref.alloc.index()].rank; });
    if (!ascending) return bad(group, name(id) + " takes its sources out of rank order");
    if (task.writes.size() != 1) {
      return bad(group, name(id) + " writes " +
                            count_of(static_cast<std::int64_t>(task.writes.size()), "ref") +
                            ", must be 1");
    }
    return Ok{};
  }

  using Parts = std::map<RankId, std::vector<Ref>>;  // by the rank they come from, in alloc order

  [[nodiscard]] Parts parts_of(std::size_t id) const {
    Parts parts;
    for (const Ref& ref : plan_.tasks[id].reads) {
      parts[plan_.allocs[ref.alloc.index()].rank].push_back(ref);
    }
    for (auto& [rank, refs] : parts) std::ranges::sort(refs, {}, &Ref::alloc);
    return parts;
  }

  // Every member of an all-gather receives the same part of each rank; its own part may already be
  // in place.
  [[nodiscard]] Checked<Ok> check_same_parts(std::int32_t group,
                                             const std::vector<std::size_t>& members) const {
    // and the member that has it
    std::map<RankId, std::pair<std::vector<Ref>, std::size_t>> wanted;
    for (const std::size_t id : members) {
      for (auto& [rank, refs] : parts_of(id)) wanted.try_emplace(rank, std::move(refs), id);
    }
    for (const std::size_t id : members) {
      const Parts parts = parts_of(id);
      for (const auto& [rank, part] : wanted) {
        const auto found = parts.find(rank);
        if (found == parts.end() ? rank == rank_of(id) : found->second == part.first) continue;
        return bad(group, name(part.second) + " and " + name(id) +
                              " gather different parts of rank " + std::to_string(rank.value));
      }
    }
    return Ok{};
  }

  const Plan& plan_;
  Words words_;
};

}  // namespace

Checked<Ok> check_groups(const Plan& plan, const Model& model) {
  const GroupCheck check(plan, model);
  std::map<std::int32_t, std::vector<std::size_t>> groups;
  for (std::size_t id = 0; id < plan.tasks.size(); ++id) {
    HP_REQUIRE_OK(check.check_grouped(id));
    if (plan.tasks[id].kind == TaskKind::Collective) groups[plan.tasks[id].group].push_back(id);
  }
  for (const auto& [group, members] : groups) HP_REQUIRE_OK(check.check(group, members));
  return Ok{};
}

}  // namespace harpe::verifier
