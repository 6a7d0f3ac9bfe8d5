#include <algorithm>

#include "ir/text.h"
#include "lower/axis_sets.h"
#include "lower/walk.h"
#include "offers/offers.h"
#include "support/check.h"

namespace harpe {
Stager::Stager(DraftWriter& writer, const NestSpace& space, const NestStmt& stmt)
    : writer_(writer), space_(space), stmt_(stmt) {
  for (std::size_t i = 0; i < stmt.operands.size(); ++i) {
    const OperandMap& map = stmt.operands[i];
    Operand operand{.map = &map,
                    .label = writer.blocks().buffers()[static_cast<std::size_t>(map.buffer)].name,
                    .levels = {}};
    const bool again = std::ranges::any_of(
        operands_, [&](const Operand& other) { return other.map->buffer == map.buffer; });
    if (again) operand.label += "." + std::to_string(i);
    const auto& digits = writer.blocks().buffers()[static_cast<std::size_t>(map.buffer)].digits;
    for (const NestMove& move : space.moves) {
      if (move.spec->kind != MoveKind::Stage || move.buffer != map.buffer) continue;
      const bool own = move.chunk >= 0 && std::ranges::find(digits, move.chunk) == digits.end();
      const int before = operand.levels.empty() ? -1 : operand.levels.back().cut;
      operand.levels.push_back({.move = &move,
                                .cut = own ? move.chunk : before,
                                .at = std::vector<std::vector<Source>>(
                                    static_cast<std::size_t>(writer.blocks().ranks()))});
    }
    operands_.push_back(std::move(operand));
  }
}

Checked<Ok> Stager::run(int position, Time t, std::int64_t position_id) {
  // In textual order over all operands, as in the form.
  for (const NestMove& move : space_.moves) {
    if (move.position != position || move.spec->kind != MoveKind::Stage) continue;
    for (Operand& operand : operands_) {
      for (std::size_t level = 0; level < operand.levels.size(); ++level) {
        if (operand.levels[level].move != &move) continue;
        HP_REQUIRE_OK(run_level(operand, level, t, position_id));
      }
    }
  }
  return Ok{};
}

std::vector<Source> Stager::sources(int operand, RankId rank) const {
  const Operand& o = operands_[static_cast<std::size_t>(operand)];
  if (!o.levels.empty()) return o.levels.back().at[rank.index()];
  return {{writer_.home(o.map->buffer, rank), rank, writer_.blocks().home(o.map->buffer, rank)}};
}

// commir.md 4.2: digits placed on axes that are not staged yet keep the rank's own coordinate. The
// others follow the need, but keep a parallel digit that a later stage must still take.
Region Stager::level_region(const Operand& operand, std::size_t level, Time t, RankId rank) const {
  const Blocks& blocks = writer_.blocks();
  const BufferTable& buffer = blocks.buffers()[static_cast<std::size_t>(operand.map->buffer)];
  std::vector<int> done;
  std::vector<int> later;
  for (std::size_t i = 0; i < operand.levels.size(); ++i) {
    const std::vector<int>& over = operand.levels[i].move->over;
    (i <= level ? done : later).insert((i <= level ? done : later).end(), over.begin(), over.end());
  }
  Region region(buffer.digits.size(), kAll);
  for (std::size_t i = 0; i < region.size(); ++i) {
    if (!buffer.home[i].empty() && !meets(buffer.home[i], done)) {
      region[i] = static_cast<std::int32_t>(blocks.coordinate(rank, buffer.home[i]));
      continue;
    }
    const int follows = operand.map->follows[i];
    if (follows < 0 || meets(space_.par[static_cast<std::size_t>(follows)], later)) continue;
    region[i] = space_.value(blocks, follows, t, rank);
  }
  return region;
}

Checked<std::vector<Source>> Stager::find_parts(const Operand& operand, std::size_t level,
                                                const Region& need, RankId rank,
                                                std::int32_t value) const {
  const Blocks& blocks = writer_.blocks();
  const NestMove& move = *operand.levels[level].move;
  const int buffer = operand.map->buffer;
  const auto& digits = blocks.buffers()[static_cast<std::size_t>(buffer)].digits;
  const std::vector<BlockId> wanted = blocks.blocks_in(digits, need);
  std::vector<bool> open(
      static_cast<std::size_t>(blocks.buffers()[static_cast<std::size_t>(buffer)].blocks));
  for (const BlockId block : wanted) open[static_cast<std::size_t>(block)] = true;
  std::size_t left = wanted.size();
  std::vector<Source> parts;
  for (const RankId other : ranks_along(blocks, rank, move.over)) {
    const std::vector<Source> candidates =
        level > 0
            ? operand.levels[level - 1].at[other.index()]
            : std::vector<Source>{{writer_.home(buffer, other), other, blocks.home(buffer, other)}};
    for (const Source& candidate : candidates) {
      if (candidate.choice >= 0 && candidate.value != value) continue;
      const std::optional<Region> common = intersect(need, candidate.region);
      if (!common) continue;
      const std::vector<BlockId> found = blocks.blocks_in(digits, *common);
      const auto fresh = static_cast<std::size_t>(std::ranges::count_if(
          found, [&](BlockId block) { return open[static_cast<std::size_t>(block)]; }));
      if (fresh == 0) continue;
      HP_CHECK(fresh == found.size(),
               "copies of one stage have the same digits fixed: they are equal or disjoint");
      for (const BlockId block : found) open[static_cast<std::size_t>(block)] = false;
      left -= found.size();
      parts.push_back({candidate.slot, candidate.rank, *common, candidate.choice, candidate.value});
    }
  }
  if (left > 0) {
    return make_diag(DiagCode::F212, {{"buffer", move.spec->buffer},
                                      {"axes", print_mesh_ref(move.spec->over)},
                                      {"rank", rank.value},
                                      {"missing", left},
                                      {"blocks", wanted.size()}});
  }
  return parts;
}

std::string rotation_defect(const Blocks& blocks, const NestSpace& space, const NestMove& move,
                            std::span<const int> followed_digits) {
  if (move.position == 0) return "it stands above every loop";
  const NestLoop& loop = space.loops[static_cast<std::size_t>(move.position) - 1];
  const std::string name =
      "loop `" + blocks.digits()[static_cast<std::size_t>(loop.digit)].name + "`";
  if (loop.skew_axes != move.over || !loop.skew_loops.empty()) {
    return name + " is not skewed by exactly these axes";
  }
  if (loop.reverse) return name + " runs in reverse";
  if (loop.extent != blocks.extent(move.over)) {
    return name + " has extent " + std::to_string(loop.extent) + ", the axes " +
           std::to_string(blocks.extent(move.over));
  }
  if (std::ranges::find(followed_digits, loop.digit) == followed_digits.end()) {
    return name + " does not index it";
  }
  return "";
}

Checked<Ok> Stager::check_relay(const Operand& operand, const NestMove& move) const {
  const std::string axes = print_mesh_ref(move.spec->over);
  if (const std::string defect =
          rotation_defect(writer_.blocks(), space_, move, operand.map->follows);
      !defect.empty()) {
    return make_diag(DiagCode::F209,
                     {{"buffer", move.spec->buffer}, {"axes", axes}, {"reason", defect}});
  }
  if (move.spec->slots() < 2 && writer_.blocks().extent(move.over) > 1) {
    return make_diag(
        DiagCode::F210,
        {{"buffer", move.spec->buffer}, {"axes", axes}, {"depth", move.spec->slots()}});
  }
  return Ok{};
}

// Step t > 0 of a relay takes what the successor held one step earlier.
Checked<std::vector<Source>> Stager::relay_parts(const Operand& operand, std::size_t level, Time t,
                                                 const Region& need, RankId rank) const {
  const Blocks& blocks = writer_.blocks();
  const NestMove& move = *operand.levels[level].move;
  const RankId neighbour =
      blocks.with_coordinate(rank, move.over, blocks.coordinate(rank, move.over) + 1);
  const std::vector<Source>& before = operand.levels[level].at[neighbour.index()];
  if (before.size() != 1 || before[0].region != need) {
    return make_diag(DiagCode::F211, {{"buffer", move.spec->buffer},
                                      {"axes", print_mesh_ref(move.spec->over)},
                                      {"rank", rank.value},
                                      {"step", t.back()},
                                      {"neighbour", neighbour.value}});
  }
  return std::vector<Source>{{before[0].slot, before[0].rank, need}};
}

Checked<Ok> Stager::run_level(Operand& operand, std::size_t level, Time t,
                              std::int64_t position_id) {
  const Blocks& blocks = writer_.blocks();
  const NestMove& move = *operand.levels[level].move;
  const std::int64_t step = t.empty() ? 0 : t.back();
  const BufferTable& buffer = blocks.buffers()[static_cast<std::size_t>(operand.map->buffer)];
  const SlotFamily family{.name = space_.program_nest->name + "." + operand.label + ".st" +
                                  std::to_string(level) + "." +
                                  std::to_string(step % move.spec->slots()),
                          .buffer = operand.map->buffer,
                          .level = harpe::Level::Stage,
                          .dtype = move.spec->wire.value_or(buffer.dtype)};
  HP_REQUIRE_OK(check_level(operand, level));
  const bool passed_on = move.spec->how == How::Relay && step > 0;
  std::vector<std::vector<Source>> arrived(static_cast<std::size_t>(blocks.ranks()));
  const std::int64_t instance = writer_.next_instance();
  const std::size_t first = writer_.draft().tasks.size();
  const int cut = operand.levels[level].cut;
  const std::int32_t values = cut < 0 ? 1 : blocks.digits()[static_cast<std::size_t>(cut)].extent;
  for (RankId rank(0); rank.value < blocks.ranks(); ++rank.value) {
    const Region need = level_region(operand, level, t, rank);
    std::vector<Source>& here = arrived[rank.index()];
    for (std::int32_t value = 0; value < values; ++value) {
      HP_TRY(std::vector<Source> parts, passed_on ? relay_parts(operand, level, t, need, rank)
                                                  : find_parts(operand, level, need, rank, value));
      // Rounds the own part as other ranks' parts are rounded, so that replicas have equal bits
      // (D14).
      const bool alias = parts.size() == 1 && parts[0].rank == rank && parts[0].region == need &&
                         has_type(parts[0], family.dtype);
      if (move.spec->how == How::Inline || alias) {
        const bool whole = std::ranges::all_of(parts, [](const Source& p) { return p.choice < 0; });
        here.insert(here.end(), parts.begin(), parts.end());
        if (whole) break;  // it serves all values
        continue;
      }
      here.push_back(arrival_slot(family, cut, value, rank, need));
      for (const Source& part : parts) {
        add_copies(operand, move, part, here.back(), instance, position_id);
      }
    }
  }
  operand.levels[level].at = std::move(arrived);
  const bool pushed = move.spec->how == How::Direct && move.spec->initiator() == Initiator::Src;
  if (pushed && !writer_.space_time_only())
    spread_pushes(writer_, first, move.over, FirstPeer::Predecessor);
  return Ok{};
}

bool Stager::has_type(const Source& source, DType dtype) const {
  return writer_.draft().slots[static_cast<std::size_t>(source.slot)].dtype == dtype;
}

Checked<Ok> Stager::check() const {
  for (const Operand& operand : operands_) {
    for (std::size_t level = 0; level < operand.levels.size(); ++level) {
      HP_REQUIRE_OK(check_level(operand, level));
    }
  }
  return Ok{};
}

Checked<Ok> Stager::check_level(const Operand& operand, std::size_t level) const {
  const NestMove& move = *operand.levels[level].move;
  HP_REQUIRE_OK(check_cuts(operand, level));
  if (move.spec->how == How::Relay) HP_REQUIRE_OK(check_relay(operand, move));
  if (move.spec->how == How::OneShot) {
    return make_diag(DiagCode::F227, {{"move", print(move.spec->kind)},
                                      {"buffer", move.spec->buffer},
                                      {"axes", print_mesh_ref(move.spec->over)},
                                      {"reason", "operands are not added up"}});
  }
  if (move.spec->how == How::Inline && !writer_.space_time_only() &&
      !is_offered(stmt_.stmt->leaf, &KernelOffer::remote_operands)) {
    return make_diag(DiagCode::F301, {{"leaf", stmt_.stmt->leaf}, {"buffer", move.spec->buffer}});
  }
  return Ok{};
}

// A cut level only has what the level before brought.
Checked<Ok> Stager::check_cuts(const Operand& operand, std::size_t level) const {
  const int before = level == 0 ? -1 : operand.levels[level - 1].cut;
  const int here = operand.levels[level].cut;
  if (before < 0 || before == here) return Ok{};
  const auto name = [&](int digit) {
    return writer_.blocks().digits()[static_cast<std::size_t>(digit)].name;
  };
  const Move& move = *operand.levels[level].move->spec;
  return make_diag(DiagCode::F224, {{"buffer", move.buffer},
                                    {"axes", print_mesh_ref(move.over)},
                                    {"digit", name(here)},
                                    {"before", name(before)}});
}

// A routed transfer cut by a digit that the buffer lacks has one slot per value, with the part of
// every block that its iterations need.
Source Stager::arrival_slot(SlotFamily family, int cut, std::int32_t value, RankId rank,
                            const Region& need) {
  if (cut < 0) return {writer_.slot(family, rank, need), rank, need};
  family.name += "." + writer_.blocks().digits()[static_cast<std::size_t>(cut)].name + "." +
                 std::to_string(value);
  return {writer_.slot(family, rank, need), rank, need, cut, value};
}

void Stager::add_copies(const Operand& operand, const NestMove& move, const Source& from,
                        const Source& to, std::int64_t instance, std::int64_t position_id) {
  const Blocks& blocks = writer_.blocks();
  const auto& digits = blocks.buffers()[static_cast<std::size_t>(operand.map->buffer)].digits;
  std::vector<Region> pieces = {from.region};
  const auto chunk = std::ranges::find(digits, move.chunk);
  if (chunk != digits.end()) {
    const auto at = static_cast<std::size_t>(chunk - digits.begin());
    if (from.region[at] == kAll) {
      pieces.clear();
      for (std::int32_t v = 0; v < blocks.digits()[static_cast<std::size_t>(*chunk)].extent; ++v) {
        pieces.push_back(from.region);
        pieces.back()[at] = v;
      }
    }
  }
  for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
    const std::vector<BlockId> moved = writer_.blocks_in(operand.map->buffer, pieces[piece]);
    if (moved.empty()) continue;
    DraftTask task;
    task.rank = move.spec->initiator() == Initiator::Src ? from.rank : to.rank;
    task.queue = queue_of(move.spec->transport());
    task.kind = TaskKind::Copy;
    task.reads = {{from.slot, WriteMode::Read, moved}};
    task.writes = {{to.slot, WriteMode::Set, moved, to.choice, to.value}};
    task.instance = instance;
    task.position = position_id;
    task.over = move.over;
    task.piece = static_cast<int>(piece) + to.value;
    task.how = move.spec->how;
    task.via = move.spec->transport();
    task.fence = move.spec->fence_policy();
    writer_.add(std::move(task));
  }
}

}  // namespace harpe
