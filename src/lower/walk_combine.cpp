#include <algorithm>
#include <map>

#include "lower/walk.h"

namespace harpe {

Drainer::Contribution Drainer::take(std::size_t level, Time t, RankId rank,
                                    const Regions& regions) {
  Contribution part{.from = rank, .slots = {}, .regions = {}, .blocks = {}};
  for (int target = 0; target < static_cast<int>(group_.targets.size()); ++target) {
    const std::optional<Region>& region = regions[static_cast<std::size_t>(target)];
    part.regions.push_back(region.value_or(Region{}));
    part.slots.push_back(region ? source_slot(target, level, rank, t) : -1);
    part.blocks.push_back(region ? writer_.live_blocks(part.slots.back(), *region)
                                 : std::vector<BlockId>{});
    for (const BlockId block : part.blocks.back()) consumed_.emplace_back(part.slots.back(), block);
  }
  return part;
}

void Drainer::release() {
  for (const auto& [slot, block] : consumed_) writer_.set_live(slot, block, false);
  consumed_.clear();
}

namespace {

bool has_digit(const BufferTable& buffer, int digit) {
  return digit >= 0 && std::ranges::find(buffer.digits, digit) != buffer.digits.end();
}

// Requires: the buffer has the digit.
std::int32_t value_of(const Blocks& blocks, const BufferTable& buffer, BlockId id, int digit) {
  const auto at = std::ranges::find(buffer.digits, digit);
  return blocks.region_of(buffer.digits, id)[static_cast<std::size_t>(at - buffer.digits.begin())];
}

// The blocks of a transfer grouped by their value of `chunk`; one group without `chunk`.
std::vector<std::vector<BlockId>> cut_by_digit(const Blocks& blocks, const BufferTable& buffer,
                                               const std::vector<BlockId>& ids, int chunk) {
  if (!has_digit(buffer, chunk)) return {ids};
  std::vector<std::vector<BlockId>> pieces(
      static_cast<std::size_t>(blocks.digits()[static_cast<std::size_t>(chunk)].extent));
  for (const BlockId id : ids) {
    pieces[static_cast<std::size_t>(value_of(blocks, buffer, id, chunk))].push_back(id);
  }
  return pieces;
}

}  // namespace

Drainer::Contribution Drainer::send(const Contribution& from, RankId to, const std::string& inbox,
                                    const NestMove& move, std::int64_t instance,
                                    std::int64_t position_id) {
  const Blocks& blocks = writer_.blocks();
  Contribution arrived{
      .from = from.from, .slots = {}, .regions = from.regions, .blocks = from.blocks};
  std::vector<std::vector<std::vector<BlockId>>> pieces;  // per target and part
  for (int target = 0; target < static_cast<int>(group_.targets.size()); ++target) {
    const auto i = static_cast<std::size_t>(target);
    const int chunk = writer_.space_time_only() ? -1 : move.chunk;
    pieces.push_back(cut_by_digit(blocks, buffer(target), from.blocks[i], chunk));
    if (from.blocks[i].empty()) {
      arrived.slots.push_back(-1);
      continue;
    }
    arrived.slots.push_back(
        writer_.slot({.name = space_.program_nest->name + "." + buffer(target).name + inbox,
                      .buffer = buffer_index(target),
                      .level = Level::Inbox,
                      .dtype = wire_type(target, move)},
                     to, from.regions[i]));
  }
  for (std::size_t piece = 0; piece < pieces.front().size(); ++piece) {
    DraftTask task;
    task.rank = move.spec->initiator() == Initiator::Src ? from.from : to;
    task.queue = queue_of(move.spec->transport());
    task.kind = TaskKind::Copy;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i].size() <= piece || pieces[i][piece].empty()) continue;
      task.reads.push_back({from.slots[i], WriteMode::Read, pieces[i][piece]});
      task.writes.push_back({arrived.slots[i], WriteMode::Set, pieces[i][piece]});
    }
    if (task.reads.empty()) continue;
    task.instance = instance;
    task.position = position_id;
    task.over = move.over;
    task.piece = static_cast<int>(piece);
    task.how = move.spec->how;
    task.via = move.spec->transport();
    task.fence = move.spec->fence_policy();
    writer_.add(std::move(task));
  }
  return arrived;
}

// Blocks with the same sources are combined by one task, with sources in the given order. Totals of
// transfers cut by `chunk` are combined part by part, each once it has arrived.
Checked<Ok> Drainer::combine(std::vector<Contribution> sources, RankId rank,
                             const std::vector<int>& results, bool finalise, int chunk) {
  const std::size_t targets = group_.targets.size();
  bool by_parts = finalise && stmt_.stmt->monoid != Monoid::Store;
  for (std::size_t i = 0; i < targets; ++i) {
    by_parts = by_parts && has_digit(buffer(static_cast<int>(i)), chunk);
  }
  struct Key {
    std::int32_t piece;
    std::vector<std::size_t> sources;
    bool adds;
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, std::vector<std::vector<BlockId>>> parts;
  for (std::size_t i = 0; i < targets; ++i) {
    std::map<BlockId, std::vector<std::size_t>> from;
    for (std::size_t s = 0; s < sources.size(); ++s) {
      for (const BlockId block : sources[s].blocks[i]) from[block].push_back(s);
    }
    for (auto& [block, list] : from) {
      const bool adds = !finalise && writer_.is_live(results[i], block);
      const std::int32_t piece =
          by_parts ? value_of(writer_.blocks(), buffer(static_cast<int>(i)), block, chunk) : 0;
      auto& blocks = parts[Key{piece, std::move(list), adds}];
      blocks.resize(targets);
      blocks[i].push_back(block);
    }
  }
  for (const auto& [key, blocks] : parts) {
    if (std::ranges::any_of(blocks, &std::vector<BlockId>::empty)) {
      return make_diag(DiagCode::F219, {{"first", buffer(0).name},
                                        {"second", buffer(static_cast<int>(targets) - 1).name},
                                        {"monoid", print(stmt_.stmt->monoid)},
                                        {"reason", "their blocks meet at different ranks"}});
    }
    DraftTask task;
    task.rank = rank;
    task.queue = QueueKind::Sm;
    task.kind = finalise ? TaskKind::Finalise : TaskKind::Fold;
    task.nest = space_.nest;
    task.stmt = static_cast<int>(stmt_.stmt - space_.program_nest->stmts.data());
    for (const std::size_t s : key.sources) {
      for (std::size_t i = 0; i < targets; ++i) {
        task.reads.push_back({sources[s].slots[i], WriteMode::Read, blocks[i]});
      }
    }
    for (std::size_t i = 0; i < targets; ++i) {
      const WriteMode mode = finalise   ? WriteMode::Set
                             : key.adds ? WriteMode::Add
                                        : WriteMode::Init;
      task.writes.push_back({results[i], mode, blocks[i]});
      for (const BlockId block : blocks[i]) writer_.set_live(results[i], block, true);
    }
    writer_.add(std::move(task));
  }
  return Ok{};
}

Checked<Ok> Drainer::finish() {
  HP_REQUIRE_OK(finalise_pending());
  if (writer_.space_time_only()) return Ok{};
  if (stmt_.stmt->monoid != Monoid::Store) init_untouched();
  gather_replicas();
  return Ok{};
}

Checked<Ok> Drainer::finalise_pending() {
  const bool in_place = group_.chain.empty() || inline_drain() != nullptr;
  if (in_place && stmt_.stmt->monoid == Monoid::Store) return Ok{};
  if (!group_.chain.empty() && is_complete(group_.chain.size() - 1)) return Ok{};
  const int levels = static_cast<int>(group_.chain.size());
  for (RankId rank(0); rank.value < writer_.blocks().ranks(); ++rank.value) {
    Contribution part{.from = rank, .slots = {}, .regions = {}, .blocks = {}};
    std::vector<int> homes;
    for (int target = 0; target < static_cast<int>(group_.targets.size()); ++target) {
      const Region region =
          levels == 0 ? accumulated(target, {}, rank) : home_region(target, rank, levels);
      part.slots.push_back(levels == 0 ? accumulator(target, rank, {})
                                       : writer_.slot({.name = space_.program_nest->name + "." +
                                                               buffer(target).name + ".sum",
                                                       .buffer = buffer_index(target),
                                                       .level = Level::Sum,
                                                       .dtype = state_type(target)},
                                                      rank, region));
      part.blocks.push_back(writer_.live_blocks(part.slots.back(), region));
      homes.push_back(writer_.home(buffer_index(target), rank));
    }
    HP_REQUIRE_OK(combine({std::move(part)}, rank, homes, true));
  }
  return Ok{};
}

// D16: an output block without contributions still has a value, the monoid's identity.
void Drainer::init_untouched() {
  const int levels = static_cast<int>(group_.chain.size());
  for (RankId rank(0); rank.value < writer_.blocks().ranks(); ++rank.value) {
    DraftTask task;
    task.rank = rank;
    task.queue = QueueKind::Sm;
    task.kind = TaskKind::Init;
    task.nest = space_.nest;
    task.stmt = static_cast<int>(stmt_.stmt - space_.program_nest->stmts.data());
    bool some = false;
    for (int target = 0; target < static_cast<int>(group_.targets.size()); ++target) {
      const int home = writer_.home(buffer_index(target), rank);
      std::vector<BlockId> missing =
          writer_.blocks_in(buffer_index(target), home_region(target, rank, levels));
      std::erase_if(missing, [&](BlockId block) { return writer_.is_live(home, block); });
      some = some || !missing.empty();
      for (const BlockId block : missing) writer_.set_live(home, block, true);
      task.writes.push_back({home, WriteMode::Set, std::move(missing)});
    }
    if (some) writer_.add(std::move(task));
  }
}

// The all-gather half of a drain to a replicated home (D14), from the last scatter to the first.
void Drainer::gather_replicas() {
  for (int level = static_cast<int>(group_.chain.size()) - 1; level >= 0; --level) {
    std::vector<int> axes;
    for (const ScatterPin& pin : pins_) {
      if (pin.level == level) axes.insert(axes.end(), pin.axes.begin(), pin.axes.end());
    }
    if (axes.empty()) continue;
    const NestMove& move = *group_.chain[static_cast<std::size_t>(level)];
    const std::int64_t position_id = writer_.next_position();
    for (int target = 0; target < static_cast<int>(group_.targets.size()); ++target) {
      const std::int64_t instance = writer_.next_instance();
      const int out = buffer_index(target);
      const std::size_t first = writer_.draft().tasks.size();
      for (RankId rank(0); rank.value < writer_.blocks().ranks(); ++rank.value) {
        for (const RankId peer : ranks_along(writer_.blocks(), rank, axes)) {
          if (peer == rank) continue;
          DraftTask task;
          task.rank = move.spec->initiator() == Initiator::Src ? peer : rank;
          task.queue = queue_of(move.spec->transport());
          task.kind = TaskKind::Copy;
          const std::vector<BlockId> blocks =
              writer_.blocks_in(out, home_region(target, peer, level + 1));
          if (blocks.empty()) continue;
          task.reads = {{writer_.home(out, peer), WriteMode::Read, blocks}};
          task.writes = {{writer_.home(out, rank), WriteMode::Set, blocks}};
          task.instance = instance;
          task.position = position_id;
          task.over = axes;
          task.how = How::Bulk;
          task.via = move.spec->transport();
          task.fence = move.spec->fence_policy();
          writer_.add(std::move(task));
        }
      }
      const bool pushed = move.spec->initiator() == Initiator::Src;
      if (pushed && !writer_.space_time_only())
        spread_pushes(writer_, first, axes, FirstPeer::Successor);
    }
  }
}

}  // namespace harpe
