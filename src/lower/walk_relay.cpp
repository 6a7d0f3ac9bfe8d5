#include <algorithm>

#include "ir/text.h"
#include "lower/walk.h"

namespace harpe {

Checked<Ok> Drainer::check_relay(std::size_t level) const {
  const Blocks& blocks = writer_.blocks();
  const NestMove& move = *group_.chain[level];
  const std::string axes = print_mesh_ref(move.spec->over);
  std::vector<int> summed;
  for (std::size_t target = 0; target < group_.targets.size(); ++target) {
    const BufferTable& out = buffer(static_cast<int>(target));
    if (const std::string defect = rotation_defect(blocks, space_, move, out.digits);
        !defect.empty()) {
      return make_diag(DiagCode::F209, {{"buffer", out.name}, {"axes", axes}, {"reason", defect}});
    }
    for (std::size_t digit = 0; digit < space_.par.size(); ++digit) {
      const int axis = blocks.digits()[digit].axis;
      if (std::ranges::find(out.axes, axis) != out.axes.end()) continue;
      summed.insert(summed.end(), space_.par[digit].begin(), space_.par[digit].end());
    }
  }
  for (const int axis : move.over) {
    if (std::ranges::find(summed, axis) == summed.end()) {
      return make_diag(DiagCode::F216, {{"buffer", move.spec->buffer}, {"axes", axes}});
    }
  }
  if (move.spec->slots() < 2 && blocks.extent(move.over) > 1) {
    return make_diag(
        DiagCode::F210,
        {{"buffer", move.spec->buffer}, {"axes", axes}, {"depth", move.spec->slots()}});
  }
  return Ok{};
}

Checked<Ok> Drainer::check_relays() const {
  for (std::size_t level = 0; level < group_.chain.size(); ++level) {
    if (group_.chain[level]->spec->how == How::Relay) HP_REQUIRE_OK(check_relay(level));
  }
  return Ok{};
}

// The travelling accumulator: adds the state that arrives from the successor's last step to this
// rank's contributions, and sends it home after the last step (Theorem 3).
Checked<Ok> Drainer::relay(std::size_t level, Time t, std::int64_t position_id) {
  HP_REQUIRE_OK(check_relay(level));
  const Blocks& blocks = writer_.blocks();
  const NestMove& move = *group_.chain[level];
  const std::int64_t step = t.back();
  const std::int64_t instance = writer_.next_instance();
  const int targets = static_cast<int>(group_.targets.size());
  std::vector<Travelling> now(static_cast<std::size_t>(blocks.ranks()));
  std::vector<Travelling>& before = previous_[level];
  for (RankId rank(0); rank.value < blocks.ranks(); ++rank.value) {
    Travelling& mine = now[rank.index()];
    for (int target = 0; target < targets; ++target) {
      mine.regions.push_back(held(target, level, t, rank));
      mine.slots.push_back(mine.regions.back() ? source_slot(target, level, rank, t) : -1);
    }
    if (step == 0 || !mine.regions.front()) continue;
    const RankId neighbour =
        blocks.with_coordinate(rank, move.over, blocks.coordinate(rank, move.over) + 1);
    const Travelling& theirs = before[neighbour.index()];
    if (theirs.regions != mine.regions) {
      return make_diag(DiagCode::F211, {{"buffer", move.spec->buffer},
                                        {"axes", print_mesh_ref(move.spec->over)},
                                        {"rank", rank.value},
                                        {"step", step},
                                        {"neighbour", neighbour.value}});
    }
    Contribution part{.from = neighbour, .slots = theirs.slots, .regions = {}, .blocks = {}};
    for (int target = 0; target < targets; ++target) {
      const auto i = static_cast<std::size_t>(target);
      part.regions.push_back(*theirs.regions[i]);
      part.blocks.push_back(writer_.live_blocks(part.slots[i], *theirs.regions[i]));
      for (const BlockId block : part.blocks[i]) consumed_.emplace_back(part.slots[i], block);
    }
    if (std::ranges::all_of(part.blocks, &std::vector<BlockId>::empty)) continue;
    part = send(part, rank,
                ".in" + std::to_string(level) + "." + std::to_string(step % move.spec->slots()),
                move, instance, position_id);
    HP_REQUIRE_OK(combine({std::move(part)}, rank, mine.slots, false));
  }
  before = std::move(now);
  if (step != blocks.extent(move.over) - 1) return Ok{};
  release();
  // Sending home depends on the folds above, so it gets a position of its own and is not merged
  // with the arrivals before them.
  return relay_home(level, t, instance, writer_.next_position());
}

Checked<Ok> Drainer::relay_home(std::size_t level, Time t, std::int64_t instance,
                                std::int64_t position_id) {
  const Blocks& blocks = writer_.blocks();
  const NestMove& move = *group_.chain[level];
  const int targets = static_cast<int>(group_.targets.size());
  for (RankId rank(0); rank.value < blocks.ranks(); ++rank.value) {
    const Regions& regions = previous_[level][rank.index()].regions;
    if (!regions.front()) continue;
    std::vector<RankId> owners;
    for (const RankId peer : ranks_along(blocks, rank, move.over)) {
      const std::optional<Region> home = destination(0, level, t, peer);
      if (home && intersect(*home, *regions.front()) == regions.front()) owners.push_back(peer);
    }
    if (owners.size() != 1) {
      return make_diag(DiagCode::F217, {{"buffer", move.spec->buffer},
                                        {"axes", print_mesh_ref(move.spec->over)},
                                        {"owners", owners.size()}});
    }
    const RankId owner = owners.front();
    Contribution part = take(level, t, rank, regions);
    if (std::ranges::all_of(part.blocks, &std::vector<BlockId>::empty)) continue;
    if (owner != rank) {
      part = send(part, owner, ".fin" + std::to_string(level), move, instance, position_id);
    }
    const bool complete = is_complete(level);
    std::vector<int> results;
    for (int target = 0; target < targets; ++target) {
      results.push_back(complete ? writer_.home(buffer_index(target), owner)
                                 : result_slot(target, level, owner, t));
    }
    HP_REQUIRE_OK(combine({std::move(part)}, owner, results, complete));
  }
  return Ok{};
}

}  // namespace harpe
