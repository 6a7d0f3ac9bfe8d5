#include <algorithm>

#include "ir/text.h"
#include "lower/axis_sets.h"
#include "lower/walk.h"

namespace harpe {
Drainer::Drainer(DraftWriter& writer, const NestSpace& space, const NestStmt& stmt,
                 StateGroup group)
    : writer_(writer), space_(space), stmt_(stmt), group_(std::move(group)) {
  if (!writer.space_time_only()) pins_ = scatter_pins(writer.blocks(), space, stmt, group_);
  previous_.resize(group_.chain.size());
}

int Drainer::buffer_index(int target) const {
  const int of_stmt = group_.targets[static_cast<std::size_t>(target)];
  return stmt_.targets[static_cast<std::size_t>(of_stmt)];
}

const BufferTable& Drainer::buffer(int target) const {
  return writer_.blocks().buffers()[static_cast<std::size_t>(buffer_index(target))];
}

DType Drainer::state_type(int target) const {
  if (stmt_.stmt->monoid == Monoid::Store) return buffer(target).dtype;
  for (std::size_t i = 0; i < group_.targets.size(); ++i) {
    if (state_dtype(buffer(static_cast<int>(i)).dtype) == DType::F64) return DType::F64;
  }
  return state_dtype(buffer(target).dtype);
}

// D14: sums travel in the output's dtype unless `wire` states another. Other states keep their
// type, unless the move only changes their owner and makes their single rounding.
DType Drainer::wire_type(int target, const NestMove& move) const {
  if (move.spec->wire) return *move.spec->wire;
  const bool as_result = stmt_.stmt->monoid == Monoid::Sum || only_changes_hands(move);
  return as_result ? buffer(target).dtype : state_type(target);
}

// The last drain, after every loop, over axes that divide no reduction: one rank sends each block
// whole to its home.
bool Drainer::only_changes_hands(const NestMove& move) const {
  const std::size_t last = group_.chain.size() - 1;
  const bool is_last = group_.chain[last]->over == move.over;
  if (writer_.space_time_only() || !is_last || !is_complete(last)) return false;
  for (std::size_t digit = 0; digit < space_.par.size(); ++digit) {
    if (!meets(space_.par[digit], move.over)) continue;
    for (std::size_t target = 0; target < group_.targets.size(); ++target) {
      const std::vector<int>& own = buffer(static_cast<int>(target)).digits;
      if (std::ranges::find(own, static_cast<int>(digit)) == own.end()) return false;
    }
  }
  return true;
}

std::vector<int> Drainer::pinned_axes(int target, std::size_t digit, int levels) const {
  const BufferTable& out = buffer(target);
  if (!out.home[digit].empty()) return out.home[digit];
  for (const ScatterPin& pin : pins_) {
    if (pin.digit == out.digits[digit] && pin.level < levels) return pin.axes;
  }
  return {};
}

Region Drainer::home_region(int target, RankId rank, int levels) const {
  const Blocks& blocks = writer_.blocks();
  Region region = blocks.home(buffer_index(target), rank);
  for (std::size_t i = 0; i < region.size(); ++i) {
    const std::vector<int> axes = pinned_axes(target, i, levels);
    if (region[i] == kAll && blocks.extent(axes) > 1) {
      region[i] = static_cast<std::int32_t>(blocks.coordinate(rank, axes));
    }
  }
  return region;
}

Region Drainer::accumulated(int target, Time t, RankId rank) const {
  const BufferTable& out = buffer(target);
  Region region(out.digits.size());
  for (std::size_t i = 0; i < region.size(); ++i) {
    region[i] = space_.value(writer_.blocks(), out.digits[i], t, rank);
  }
  return region;
}

// commir.md 4.3, own_U after the drains 0..level.
std::optional<Region> Drainer::owned(int target, std::size_t level, Time t, RankId rank) const {
  const Blocks& blocks = writer_.blocks();
  const BufferTable& out = buffer(target);
  std::vector<int> done;
  for (std::size_t i = 0; i <= level; ++i) {
    done.insert(done.end(), group_.chain[i]->over.begin(), group_.chain[i]->over.end());
  }
  Region region = accumulated(target, t, rank);
  for (std::size_t i = 0; i < region.size(); ++i) {
    const auto digit = static_cast<std::size_t>(out.digits[i]);
    if (blocks.digits()[digit].extent == 1) continue;
    const std::vector<int> axes = pinned_axes(target, i, static_cast<int>(level) + 1);
    const bool placed = !axes.empty() && is_subset(axes, done);
    const auto home = placed ? static_cast<std::int32_t>(blocks.coordinate(rank, axes)) : kAll;
    std::int32_t& value = region[i];
    if (!space_.par[digit].empty()) {
      if (is_subset(space_.par[digit], done)) {
        value = kAll;
      } else if (placed && home != value) {
        return std::nullopt;
      }
    } else if (const int loop = space_.loop_of[digit]; loop >= 0 && value != kAll) {
      const bool moves = meets(space_.loops[static_cast<std::size_t>(loop)].skew_axes, done);
      if (placed || moves) value = kAll;
    }
    if (placed) value = home;
  }
  return region;
}

std::optional<Region> Drainer::held(int target, std::size_t level, Time t, RankId rank) const {
  if (level == 0) return accumulated(target, t, rank);
  return owned(target, level - 1, t, rank);
}

std::optional<Region> Drainer::destination(int target, std::size_t level, Time t,
                                           RankId rank) const {
  const bool final = level + 1 == group_.chain.size();
  if (final) return home_region(target, rank, static_cast<int>(group_.chain.size()));
  return owned(target, level, t, rank);
}

int Drainer::accumulator(int target, RankId rank, Time t) {
  const int index = buffer_index(target);
  if (stmt_.stmt->monoid == Monoid::Store && group_.chain.empty()) return writer_.home(index, rank);
  const std::size_t position =
      group_.chain.empty() ? 0 : static_cast<std::size_t>(group_.chain[0]->position);
  const std::int64_t slot = position == 0 ? 0 : t[position - 1] % group_.chain[0]->spec->slots();
  return writer_.slot({.name = space_.program_nest->name + "." + buffer(target).name + ".acc" +
                               std::to_string(slot),
                       .buffer = index,
                       .level = Level::Acc,
                       .dtype = state_type(target)},
                      rank, accumulated(target, t.first(position), rank));
}

const NestMove* Drainer::inline_drain() const {
  const auto found = std::ranges::find(group_.chain, How::Inline,
                                       [](const NestMove* move) { return move->spec->how; });
  return found == group_.chain.end() ? nullptr : *found;
}

std::vector<Drainer::Deposit> Drainer::deposits(int target, RankId rank, Time t) {
  const Region made = accumulated(target, t, rank);
  const NestMove* const move = inline_drain();
  if (move == nullptr) return {{accumulator(target, rank, t), made}};
  std::vector<Deposit> owners;
  for (const RankId peer : ranks_along(writer_.blocks(), rank, move->over)) {
    const std::optional<Region> owned =
        intersect(home_region(target, peer, static_cast<int>(group_.chain.size())), made);
    if (!owned) continue;
    const bool stores = stmt_.stmt->monoid == Monoid::Store;
    owners.push_back(
        {stores ? writer_.home(buffer_index(target), peer) : result_slot(target, 0, peer, t),
         *owned});
  }
  return owners;
}

int Drainer::source_slot(int target, std::size_t level, RankId rank, Time t) {
  return level == 0 ? accumulator(target, rank, t) : result_slot(target, level - 1, rank, t);
}

// Between two drains, the state has as many slots as the later drain needs: a relay sends the last
// step's state while the current one arrives.
int Drainer::result_slot(int target, std::size_t level, RankId rank, Time t) {
  const bool final = level + 1 == group_.chain.size();
  std::string name = space_.program_nest->name + "." + buffer(target).name;
  if (final) {
    name += ".sum";
  } else {
    const NestMove& next = *group_.chain[level + 1];
    const std::int64_t slot =
        next.position == 0 ? 0
                           : t[static_cast<std::size_t>(next.position) - 1] % next.spec->slots();
    name += ".dr" + std::to_string(level) + "." + std::to_string(slot);
  }
  // The slot's shape covers the state until the next drain.
  const Time life =
      final ? t : t.first(static_cast<std::size_t>(group_.chain[level + 1]->position));
  const std::optional<Region> region = destination(target, level, life, rank);
  HP_CHECK(region.has_value(), "a rank that owns nothing keeps nothing");
  return writer_.slot({.name = name,
                       .buffer = buffer_index(target),
                       .level = final ? Level::Sum : Level::Drain,
                       .dtype = state_type(target)},
                      rank, *region);
}

bool Drainer::is_complete(std::size_t level) const {
  if (level + 1 != group_.chain.size()) return false;
  const NestMove& move = *group_.chain[level];
  if (move.spec->how == How::Inline) return false;  // the owners finalise their sums at the end
  return move.position == (move.spec->how == How::Relay ? 1 : 0);
}

Checked<Ok> Drainer::run(int position, Time t, std::int64_t position_id) {
  for (std::size_t level = 0; level < group_.chain.size(); ++level) {
    if (group_.chain[level]->position != position) continue;
    if (group_.chain[level]->spec->how == How::Inline) continue;  // the leaf does it: deposits
    if (group_.chain[level]->spec->how == How::Relay) {
      HP_REQUIRE_OK(relay(level, t, position_id));
    } else {
      HP_REQUIRE_OK(collect(level, t, position_id));
    }
    release();
  }
  return Ok{};
}

Checked<Ok> Drainer::collect(std::size_t level, Time t, std::int64_t position_id) {
  const std::int64_t instance = writer_.next_instance();
  const std::int64_t ranks = writer_.blocks().ranks();
  const bool complete = is_complete(level);
  const std::size_t first = writer_.draft().tasks.size();
  std::vector<std::vector<Contribution>>
      sources;  // all sends first, so that they can become one collective
  for (RankId rank(0); rank.value < ranks; ++rank.value) {
    sources.push_back(collect_at(level, t, rank, instance, position_id));
  }
  const NestMove& move = *group_.chain[level];
  const bool is_direct = move.spec->how == How::Direct || move.spec->how == How::OneShot;
  const bool pushed = is_direct && move.spec->initiator() == Initiator::Src;
  if (pushed && !writer_.space_time_only())
    spread_pushes(writer_, first, move.over, FirstPeer::Successor);
  if (rounds_unevenly(level, t)) {
    for (RankId rank(0); rank.value < ranks; ++rank.value) {
      round_own(sources[rank.index()], rank, level, t, position_id);
    }
  }
  drop_replicas(level, t);
  const bool own_first = begins_with_own(level, t);
  for (RankId rank(0); rank.value < ranks; ++rank.value) {
    if (sources[rank.index()].empty()) continue;
    if (own_first) {
      std::ranges::stable_partition(sources[rank.index()],
                                    [&](const Contribution& part) { return part.from == rank; });
    }
    std::vector<int> results;
    for (int target = 0; target < static_cast<int>(group_.targets.size()); ++target) {
      results.push_back(complete ? writer_.home(buffer_index(target), rank)
                                 : result_slot(target, level, rank, t));
    }
    HP_REQUIRE_OK(combine(std::move(sources[rank.index()]), rank, results, complete,
                          writer_.space_time_only() ? -1 : move.chunk));
  }
  return Ok{};
}

// Whether several ranks receive the same block. Ranks differ only in digit values, so the first
// receiving rank decides for all.
bool Drainer::is_shared(int target, std::size_t level, Time t) const {
  const Blocks& blocks = writer_.blocks();
  const NestMove& move = *group_.chain[level];
  const std::vector<int> replicated = unbound_axes(move);
  for (RankId rank(0); rank.value < blocks.ranks(); ++rank.value) {
    const std::optional<Region> mine = destination(target, level, t, rank);
    if (!mine) continue;
    return std::ranges::any_of(ranks_along(blocks, rank, move.over), [&](RankId peer) {
      const bool same = blocks.coordinate(peer, replicated) == blocks.coordinate(rank, replicated);
      const std::optional<Region> theirs = destination(target, level, t, peer);
      return peer != rank && same && theirs && intersect(*mine, *theirs);
    });
  }
  return false;
}

// Whether several ranks receive the same block, each with its own part exact and the others
// rounded.
bool Drainer::rounds_unevenly(std::size_t level, Time t) const {
  if (writer_.space_time_only()) return false;
  const NestMove& move = *group_.chain[level];
  for (int target = 0; target < static_cast<int>(group_.targets.size()); ++target) {
    const bool rounds = size_in_bytes(wire_type(target, move)) < size_in_bytes(state_type(target));
    if (rounds && is_shared(target, level, t)) return true;
  }
  return false;
}

// Whether each rank may add its own part first, which is there earliest. Replicas must add in one
// order to have equal bits, and NCCL's exchanges are folded in its order (D14).
bool Drainer::begins_with_own(std::size_t level, Time t) const {
  if (writer_.space_time_only()) return false;
  if (group_.chain[level]->spec->transport() == Via::Nccl) return false;
  for (int target = 0; target < static_cast<int>(group_.targets.size()); ++target) {
    if (is_shared(target, level, t)) return false;
  }
  return true;
}

// Sends a rank's own part through an inbox too, so that replicas have equal bits (D14).
void Drainer::round_own(std::vector<Contribution>& sources, RankId rank, std::size_t level, Time t,
                        std::int64_t position_id) {
  const NestMove& move = *group_.chain[level];
  Move local = *move.spec;
  local.via = Via::Sm;
  NestMove beside = move;
  beside.spec = &local;
  for (Contribution& part : sources) {
    if (part.from != rank) continue;
    part = send(part, rank, inbox_name(level, 0, t), beside, writer_.next_instance(), position_id);
  }
}

std::string Drainer::inbox_name(std::size_t level, std::int64_t distance, Time t) const {
  const std::int64_t step = t.empty() ? 0 : t.back() % group_.chain[level]->spec->slots();
  return ".in" + std::to_string(level) + ".from" + std::to_string(distance) + "." +
         std::to_string(step);
}

// The mesh axes along which ranks hold replicas of the contributions.
std::vector<int> Drainer::unbound_axes(const NestMove& move) const {
  std::vector<int> unbound;
  for (const int axis : move.over) {
    const bool bound = std::ranges::any_of(
        space_.par, [&](const auto& axes) { return meets(axes, std::vector<int>{axis}); });
    if (!bound) unbound.push_back(axis);
  }
  return unbound;
}

// A state that no owner took is a replica of a taken one; its slot is free for the next step.
void Drainer::drop_replicas(std::size_t level, Time t) {
  const std::int64_t ranks = writer_.blocks().ranks();
  for (RankId rank(0); rank.value < ranks; ++rank.value) {
    for (int target = 0; target < static_cast<int>(group_.targets.size()); ++target) {
      const std::optional<Region> region = held(target, level, t, rank);
      if (!region) continue;
      const int slot = source_slot(target, level, rank, t);
      for (const BlockId block : writer_.live_blocks(slot, *region)) {
        consumed_.emplace_back(slot, block);
      }
    }
  }
}

// What owner `rank` receives from every rank along the drain's axes that holds its own part rather
// than a replica, in ascending rank.
std::vector<Drainer::Contribution> Drainer::collect_at(std::size_t level, Time t, RankId rank,
                                                       std::int64_t instance,
                                                       std::int64_t position_id) {
  const Blocks& blocks = writer_.blocks();
  const NestMove& move = *group_.chain[level];
  const std::vector<int> replicated = unbound_axes(move);
  std::vector<RankId> peers = ranks_along(blocks, rank, move.over);
  std::ranges::sort(peers);
  std::vector<Contribution> sources;
  for (const RankId peer : peers) {
    if (blocks.coordinate(peer, replicated) != blocks.coordinate(rank, replicated)) continue;
    Regions regions;
    for (int target = 0; target < static_cast<int>(group_.targets.size()); ++target) {
      const std::optional<Region> wanted = destination(target, level, t, rank);
      const std::optional<Region> offered = held(target, level, t, peer);
      regions.push_back(wanted && offered ? intersect(*wanted, *offered) : std::nullopt);
    }
    Contribution part = take(level, t, peer, regions);
    if (std::ranges::all_of(part.blocks, &std::vector<BlockId>::empty)) continue;
    if (peer != rank) {
      const std::int64_t size = blocks.extent(move.over);
      const std::int64_t distance =
          (blocks.coordinate(peer, move.over) - blocks.coordinate(rank, move.over) + size) % size;
      part = send(part, rank, inbox_name(level, distance, t), move, instance, position_id);
    }
    sources.push_back(std::move(part));
  }
  return sources;
}

}  // namespace harpe
