#include "lower/walk_compute.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "ir/text.h"

namespace harpe {

Computer::Computer(DraftWriter& writer, const NestSpace& space, const NestStmt& stmt)
    : writer_(writer), space_(space), stmt_(stmt) {
  const Blocks& blocks = writer.blocks();
  for (const OperandMap& operand : stmt.operands) {
    indexings_.push_back(index_buffer(operand.buffer, operand.follows));
  }
  for (const int target : stmt.targets) {
    indexings_.push_back(
        index_buffer(target, blocks.buffers()[static_cast<std::size_t>(target)].digits));
  }
  for (const Indexing& indexing : indexings_) {
    const BufferTable& buffer = blocks.buffers()[static_cast<std::size_t>(indexing.buffer)];
    touched_.push_back({std::vector<std::uint8_t>(static_cast<std::size_t>(buffer.blocks)), {}});
  }
  for (std::size_t i = 0; i < space.digits.size(); ++i) {
    const int axis = blocks.digits()[static_cast<std::size_t>(space.digits[i])].axis;
    if (axes_.empty() || axes_.back().axis != axis) axes_.push_back({axis, {}});
    axes_.back().digits.push_back(i);
  }
  if (!stmt.mask) return;
  const auto at = [&](int axis) {
    return static_cast<std::size_t>(std::ranges::find(axes_, axis, &IterationAxis::axis) -
                                    axes_.begin());
  };
  query_axis_ = at(stmt.mask->query_axis);
  key_axis_ = at(stmt.mask->key_axis);
}

Computer::Indexing Computer::index_buffer(int buffer, const std::vector<int>& follows) const {
  const Blocks& blocks = writer_.blocks();
  const BufferTable& table = blocks.buffers()[static_cast<std::size_t>(buffer)];
  Indexing indexing{
      .buffer = buffer, .strides = std::vector<BlockId>(space_.digits.size()), .free = {0}};
  for (std::size_t i = 0; i < table.digits.size(); ++i) {
    const auto at = std::ranges::find(space_.digits, follows[i]);
    if (at != space_.digits.end()) {
      indexing.strides[static_cast<std::size_t>(at - space_.digits.begin())] += table.strides[i];
      continue;
    }
    std::vector<BlockId> wider;
    const std::int32_t extent = blocks.digits()[static_cast<std::size_t>(table.digits[i])].extent;
    for (const BlockId offset : indexing.free) {
      for (std::int32_t v = 0; v < extent; ++v) wider.push_back(offset + v * table.strides[i]);
    }
    indexing.free = std::move(wider);
  }
  return indexing;
}

Interval Computer::interval_of(std::size_t iteration_axis,
                               const std::vector<std::int32_t>& values) const {
  const IterationAxis& axis = axes_[iteration_axis];
  std::int64_t block = 0;
  for (const std::size_t i : axis.digits) {
    const auto digit = static_cast<std::size_t>(space_.digits[i]);
    block = block * writer_.blocks().digits()[digit].extent + values[i];
  }
  return writer_.blocks().interval(axis.axis, block);
}

// Empty blocks (D12) and fully masked blocks are not run.
bool Computer::is_skipped(const std::vector<std::int32_t>& values) const {
  if (!writer_.space_time_only()) {
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      if (axes_[i].digits.size() > 0 && interval_of(i, values).size() == 0) return true;
    }
  }
  return stmt_.mask && classify(stmt_.mask->visible, interval_of(query_axis_, values),
                                interval_of(key_axis_, values)) == Coverage::Empty;
}

std::vector<BlockId> Computer::run_blocks(Time t, RankId rank) {
  const Blocks& blocks = writer_.blocks();
  const std::size_t digits = space_.digits.size();
  std::vector<std::int32_t> low(digits);
  std::vector<std::int32_t> high(digits);
  std::vector<BlockId> stride(digits);
  BlockId total = 1;
  for (std::size_t i = digits; i-- > 0;) {
    const std::int32_t extent = blocks.digits()[static_cast<std::size_t>(space_.digits[i])].extent;
    const std::int32_t value = space_.value(blocks, space_.digits[i], t, rank);
    low[i] = value == kAll ? 0 : value;
    high[i] = value == kAll ? extent - 1 : value;
    stride[i] = total;
    total *= extent;
  }
  std::vector<BlockId> run;
  std::vector<std::int32_t> values = low;
  while (true) {
    if (!is_skipped(values)) {
      BlockId block = 0;
      for (std::size_t i = 0; i < digits; ++i) block += values[i] * stride[i];
      run.push_back(block);
      for (std::size_t b = 0; b < indexings_.size(); ++b) {
        BlockId base = 0;
        for (std::size_t i = 0; i < digits; ++i) base += values[i] * indexings_[b].strides[i];
        for (const BlockId offset : indexings_[b].free) {
          std::uint8_t& flag = touched_[b].flags[static_cast<std::size_t>(base + offset)];
          if (std::exchange(flag, std::uint8_t{1}) == 0)
            touched_[b].blocks.push_back(base + offset);
        }
      }
    }
    std::size_t i = digits;
    while (i > 0 && values[i - 1] == high[i - 1]) {
      --i;
      values[i] = low[i];
    }
    if (i == 0) break;
    ++values[i - 1];
  }
  for (Touched& touched : touched_) std::ranges::sort(touched.blocks);
  return run;
}

// Clears only the touched flags, because buffers may have many more blocks than a task touches.
void Computer::forget_touched() {
  for (Touched& touched : touched_) {
    for (const BlockId block : touched.blocks) touched.flags[static_cast<std::size_t>(block)] = 0;
    touched.blocks.clear();
  }
}

// The flagged blocks of a region, ascending. Scans the smaller of the region and the touched
// blocks.
std::vector<BlockId> Computer::found_blocks(const BufferTable& buffer, const Region& region,
                                            const Touched& touched) const {
  const Blocks& blocks = writer_.blocks();
  const auto extent_of = [&](std::size_t i) {
    return blocks.digits()[static_cast<std::size_t>(buffer.digits[i])].extent;
  };
  std::int64_t size = 1;
  for (std::size_t i = 0; i < region.size(); ++i) size *= region[i] == kAll ? extent_of(i) : 1;
  const auto is_flagged = [&](BlockId block) {
    return touched.flags[static_cast<std::size_t>(block)] != 0;
  };
  if (size <= std::ssize(touched.blocks)) {
    std::vector<BlockId> found = blocks.blocks_in(buffer.digits, region);
    std::erase_if(found, [&](BlockId block) { return !is_flagged(block); });
    return found;
  }
  const auto is_inside = [&](BlockId block) {
    for (std::size_t i = region.size(); i-- > 0; block /= extent_of(i)) {
      if (region[i] != kAll && region[i] != block % extent_of(i)) return false;
    }
    return true;
  };
  std::vector<BlockId> found;
  std::ranges::copy_if(touched.blocks, std::back_inserter(found),
                       [&](BlockId block) { return is_flagged(block) && is_inside(block); });
  return found;
}

// For a routed transfer cut by a digit: the blocks, ascending, that this task's iterations with the
// source's digit value read. Each value has its own slot, so a block may be read from several
// slots.
std::vector<BlockId> Computer::chosen_blocks(const DraftTask& task, std::size_t operand,
                                             const Source& source) const {
  std::vector<BlockId> chosen;
  const auto at = static_cast<std::size_t>(std::ranges::find(space_.digits, source.choice) -
                                           space_.digits.begin());
  const Indexing& indexing = indexings_[operand];
  for (const BlockId iteration : task.iter) {
    const Region values = writer_.blocks().region_of(space_.digits, iteration);
    if (values[at] != source.value) continue;
    BlockId base = 0;
    for (std::size_t i = 0; i < values.size(); ++i) base += values[i] * indexing.strides[i];
    for (const BlockId offset : indexing.free) chosen.push_back(base + offset);
  }
  std::ranges::sort(chosen);
  return chosen;
}

Checked<Ok> Computer::add_reads(DraftTask& task, std::size_t operand, const Stager& stager) {
  const Blocks& blocks = writer_.blocks();
  const BufferTable& buffer =
      blocks.buffers()[static_cast<std::size_t>(indexings_[operand].buffer)];
  Touched& left = touched_[operand];
  for (const Source& source : stager.sources(static_cast<int>(operand), task.rank)) {
    DraftRef ref{.slot = source.slot,
                 .mode = WriteMode::Read,
                 .blocks = {},
                 .choice = source.choice,
                 .value = source.value};
    std::vector<BlockId> found;
    if (source.choice < 0) {
      found = found_blocks(buffer, source.region, left);
    } else {
      const std::vector<BlockId> chosen = chosen_blocks(task, operand, source);
      found = blocks.blocks_in(buffer.digits, source.region);
      std::erase_if(found,
                    [&](BlockId block) { return !std::ranges::binary_search(chosen, block); });
    }
    for (const BlockId block : found) {
      left.flags[static_cast<std::size_t>(block)] = 0;
      if (!writer_.is_empty(indexings_[operand].buffer, block)) ref.blocks.push_back(block);
    }
    if (!ref.blocks.empty()) task.reads.push_back(std::move(ref));
  }
  const auto missing = std::ranges::find_if(
      left.blocks, [&](BlockId block) { return left.flags[static_cast<std::size_t>(block)] != 0; });
  if (missing == left.blocks.end()) return Ok{};
  const BlockId block = *missing;
  std::string text = "[";
  for (const std::int32_t value : blocks.region_of(buffer.digits, block)) {
    text += (text.size() > 1 ? ", " : "") + std::to_string(value);
  }
  return make_diag(DiagCode::F214, {{"buffer", buffer.name},
                                    {"rank", task.rank.value},
                                    {"block", text + "]"},
                                    {"nest", space_.program_nest->name}});
}

Checked<Ok> Computer::add_writes(DraftTask& task, Drainer& drainer, Time t) {
  const Blocks& blocks = writer_.blocks();
  for (std::size_t i = 0; i < drainer.group().targets.size(); ++i) {
    const auto target = static_cast<std::size_t>(drainer.group().targets[i]);
    const int buffer = stmt_.targets[target];
    const Touched& touched = touched_[stmt_.operands.size() + target];
    const NestMove* const move = drainer.inline_drain();
    std::vector<BlockId> owned;  // once per owner
    for (const Drainer::Deposit& deposit : drainer.deposits(static_cast<int>(i), task.rank, t)) {
      std::vector<BlockId> made =
          found_blocks(blocks.buffers()[static_cast<std::size_t>(buffer)], deposit.region, touched);
      std::erase_if(made, [&](BlockId block) { return writer_.is_empty(buffer, block); });
      if (move != nullptr) owned.insert(owned.end(), made.begin(), made.end());
      add_write(task, deposit.slot, made);
    }
    if (move == nullptr) continue;
    std::ranges::sort(owned);
    for (const BlockId block : touched.blocks) {
      const auto owners = std::ranges::equal_range(owned, block).size();
      if (owners == 1 || (owners == 0 && writer_.is_empty(buffer, block))) continue;
      return make_diag(DiagCode::F241, {{"buffer", move->spec->buffer},
                                        {"axes", print_mesh_ref(names_of(blocks, move->over))},
                                        {"reason", "a block has " + std::to_string(owners) +
                                                       " homes along them instead of one"}});
    }
  }
  return Ok{};
}

void Computer::add_write(DraftTask& task, int slot, const std::vector<BlockId>& made) {
  const bool store = stmt_.stmt->monoid == Monoid::Store;
  DraftRef first{.slot = slot, .mode = store ? WriteMode::Set : WriteMode::Init, .blocks = {}};
  DraftRef further{.slot = slot, .mode = WriteMode::Add, .blocks = {}};
  for (const BlockId block : made) {
    const bool live = !store && writer_.is_live(slot, block);
    (live ? further : first).blocks.push_back(block);
    writer_.set_live(slot, block, true);
  }
  if (!first.blocks.empty()) task.writes.push_back(std::move(first));
  if (!further.blocks.empty()) task.writes.push_back(std::move(further));
}

// The steps of the leaf's own loops share the launch of their scheduled step.
std::int32_t Computer::kernel_of(Time t, RankId rank) {
  if (launch_.empty()) {
    launch_.assign(static_cast<std::size_t>(writer_.blocks().ranks()), -1);
    launch_step_.assign(launch_.size(), -1);
  }
  std::int32_t step = 0;
  for (std::size_t i = 0; i < space_.scheduled_loops; ++i)
    step = step * space_.loops[i].extent + t[i];
  if (launch_step_[rank.index()] != step) {
    launch_step_[rank.index()] = step;
    launch_[rank.index()] = writer_.next_kernel();
  }
  return launch_[rank.index()];
}

Checked<Ok> Computer::run(Time t, const Stager& stager, std::vector<Drainer>& drainers) {
  const Blocks& blocks = writer_.blocks();
  for (RankId rank(0); rank.value < blocks.ranks(); ++rank.value) {
    forget_touched();
    DraftTask task;
    task.rank = rank;
    task.queue = QueueKind::Sm;
    task.kind = TaskKind::Compute;
    task.nest = space_.nest;
    task.stmt = static_cast<int>(stmt_.stmt - space_.program_nest->stmts.data());
    task.iter = run_blocks(t, rank);
    if (task.iter.empty()) continue;
    task.kernel = kernel_of(t, rank);
    for (std::size_t operand = 0; operand < stmt_.operands.size(); ++operand) {
      HP_REQUIRE_OK(add_reads(task, operand, stager));
    }
    for (Drainer& drainer : drainers) {
      HP_REQUIRE_OK(add_writes(task, drainer, t));
    }
    writer_.add(std::move(task));
  }
  return Ok{};
}

}  // namespace harpe
