#include "schedule/fit.h"

#include <algorithm>
#include <array>
#include <set>

#include "machine/rates.h"
#include "schedule/transports.h"

namespace harpe {
namespace {

// The machine levels that connect ranks differing only along these axes.
std::set<int> levels_over(const MeshRef& over, const Mesh& mesh, const Machine& machine) {
  std::vector<RankId> ranks = {RankId(0)};
  for (const std::string& name : over) {
    const int axis = find_axis(mesh, name);
    if (axis < 0) return {};
    const auto at = static_cast<std::size_t>(axis);
    std::vector<RankId> more;
    for (const RankId rank : ranks) {
      std::vector<std::int64_t> coordinates = coordinates_of(mesh, rank);
      for (std::int64_t value = 0; value < mesh.axes[at].size; ++value) {
        coordinates[at] = value;
        more.push_back(rank_of(mesh, coordinates));
      }
    }
    ranks = std::move(more);
  }
  // In row-major order, comparing neighbours, and the first rank with all others, finds every
  // level.
  std::set<int> levels;
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    levels.insert(level_between(machine, ranks[i - 1].value, ranks[i].value));
    levels.insert(level_between(machine, ranks[0].value, ranks[i].value));
  }
  return levels;
}

bool reaches(Via via, const std::set<int>& levels, const Machine& machine) {
  return std::ranges::all_of(
      levels, [&](int level) { return find_transport(machine, print(via), level) != nullptr; });
}

void send_by(Move& move, Via via) {
  move.via = via;
  move.sm = std::nullopt;
  if (is_source_initiated(via)) move.by = Initiator::Src;
  if (via == Via::Nccl) move.by = std::nullopt;  // all ranks start it together
  if (move.signal && !can_signal(via, *move.signal)) {
    move.signal = can_signal(via, Signal::Flag) ? std::optional(Signal::Flag) : std::nullopt;
  }
  // One fence per destination, because one per put would wait for the NIC each time (Perseus).
  move.fence =
      takes_fence(via) ? std::optional(move.fence.value_or(Fence::PerDestination)) : std::nullopt;
}

}  // namespace

FittedForm fit_transports(const NormalForm& form, const Mesh& mesh, const Machine& machine) {
  FittedForm fitted{.form = form, .refits = {}};
  const Mesh whole = refined(mesh, form);
  for (NestForm& nest : fitted.form.nests) {
    for (NestItem& item : nest.items) {
      Move* const move = std::get_if<Move>(&item);
      if (move == nullptr || move->how == How::Inline) continue;
      const Via from = move->transport();
      const std::set<int> levels = levels_over(move->over, whole, machine);
      if (reaches(from, levels, machine)) continue;
      std::array ways = {Via::Proxy, Via::Nccl};
      if (move->how == How::Bulk) std::ranges::reverse(ways);
      const auto way =
          std::ranges::find_if(ways, [&](Via via) { return reaches(via, levels, machine); });
      if (way == ways.end()) continue;
      send_by(*move, *way);
      fitted.refits.push_back({.nest = nest.nest,
                               .buffer = move->buffer,
                               .over = move->over,
                               .from = from,
                               .to = *way});
    }
  }
  return fitted;
}

}  // namespace harpe
