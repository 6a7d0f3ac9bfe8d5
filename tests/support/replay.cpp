#include "tests/support/replay.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "ir/blocks.h"
#include "tests/support/replay_leaf.h"

namespace harpe::test {
namespace {

// A value has one symbol; a partial state has the symbols of its contributions.
struct Held {
  bool is_state = false;
  std::vector<int> symbols;  // ascending
  std::string part = "";     // "e1=2": only what iterations with this value need; "": all
  friend bool operator==(const Held&, const Held&) = default;
};

std::string list(const std::vector<int>& numbers) {
  std::string text;
  for (const int n : numbers) text += std::to_string(n) + ",";
  return text;
}

struct Wrong {
  std::string what;
};

using Place = std::pair<std::string, Point>;  // buffer, block

class Machine {
 public:
  Machine(const Plan& plan, std::uint64_t seed)
      : plan_(plan), blocks_(*Blocks::make(plan.program, plan.mesh, plan.form)), random_(seed) {}

  std::optional<std::string> run() {
    run_program();
    try {
      run_plan();
    } catch (const Wrong& wrong) {
      return wrong.what;
    }
    return compare();
  }

 private:
  Held value(const std::string& stmt, const std::string& buffer, const Point& block,
             std::vector<int> contributions) {
    std::ranges::sort(contributions);
    std::string text = "value " + stmt + " " + buffer + " of " + list(contributions) + " at ";
    for (const std::int32_t v : block) text += std::to_string(v) + ",";
    const int symbol = symbols_.of(text);
    finalised_[symbol] = contributions;
    return {.is_state = false, .symbols = {symbol}};
  }

  Held input(const std::string& buffer, const Point& block) {
    std::string text = "input " + buffer + " ";
    for (const std::int32_t v : block) text += std::to_string(v) + ",";
    return {.is_state = false, .symbols = {symbols_.of(text)}};
  }

  [[nodiscard]] std::vector<Point> all_blocks(const std::string& buffer) const {
    const BufferTable& table =
        blocks_.buffers()[static_cast<std::size_t>(blocks_.find_buffer(buffer))];
    Box box;
    for (const int digit : table.digits) {
      box.push_back({.lo = 0, .hi = blocks_.digits()[static_cast<std::size_t>(digit)].extent});
    }
    std::vector<Point> points = points_in(box);
    std::erase_if(points, [&](const Point& p) {
      BlockId block = 0;
      for (std::size_t i = 0; i < p.size(); ++i) block += p[i] * table.strides[i];
      return blocks_.elements(blocks_.find_buffer(buffer), block) == 0;
    });
    return points;
  }

  void run_program() {
    for (const Buffer* const buffer : buffers_of(plan_.program)) {
      if (buffer->role != Role::In) continue;
      for (const Point& p : all_blocks(buffer->name)) {
        wanted_[{buffer->name, p}] = input(buffer->name, p);
      }
    }
    for (const Nest& nest : plan_.program.nests) {
      for (std::size_t s = 0; s < nest.stmts.size(); ++s) {
        const Leaf leaf(plan_.program, blocks_, nest, s);
        std::map<Place, std::vector<int>> made;
        Box box;
        for (const int digit : leaf.digits()) {
          box.push_back({.lo = 0, .hi = blocks_.digits()[static_cast<std::size_t>(digit)].extent});
        }
        for (const Point& p : points_in(box)) {
          if (!leaf.runs(p)) continue;
          const int symbol =
              leaf.contribution(symbols_, p, [&](const std::string& b, const Point& q) {
                return wanted_.at({b, q}).symbols.at(0);
              });
          for (const Access& target : leaf.stmt().targets) {
            for (const Point& q : leaf.touched(target, p)) {
              made[{target.buffer, q}].push_back(symbol);
            }
          }
        }
        for (const Access& target : leaf.stmt().targets) {
          for (const Point& q : all_blocks(target.buffer)) {
            wanted_[{target.buffer, q}] =
                value(leaf.name(), target.buffer, q, made[{target.buffer, q}]);
          }
        }
      }
    }
  }

  // Order of events.

  // Every task is an event: its end. A put ends when it is posted; its arrival is a second event,
  // numbered behind all tasks.
  [[nodiscard]] std::size_t arrival_of(std::size_t put) const { return plan_.tasks.size() + put; }

  // The arrivals of all puts of this queue up to this put, to any rank or only to the same one.
  [[nodiscard]] std::set<std::size_t> arrivals_up_to(std::size_t put, bool same_rank) const {
    std::set<std::size_t> found;
    for (std::size_t t = 0; t <= put; ++t) {
      const Task& task = plan_.tasks[t];
      if (task.queue != plan_.tasks[put].queue || !is_put(plan_, task)) continue;
      const bool same = destination_of(plan_, task) == destination_of(plan_, plan_.tasks[put]);
      if (same || !same_rank) found.insert(arrival_of(t));
    }
    return found;
  }

  // The events that have happened when task `to` sees the signal of task `from`.
  [[nodiscard]] std::set<std::size_t> seen_by(std::size_t from, std::size_t to, bool drains,
                                              std::optional<Fence> fence) const {
    if (!is_put(plan_, plan_.tasks[from])) return {from};
    if (drains) return arrivals_up_to(from, false);
    const RankId rank = plan_.queues[plan_.tasks[to].queue.index()].rank;
    const bool same_way = destination_of(plan_, plan_.tasks[from]) == rank;
    // Immediate data and NIC ordering hold only at the destination of the put.
    const bool of_nic =
        fence == Fence::NicOrdered || fence == Fence::Batched || fence == Fence::Immediate;
    if (!fence || (of_nic && !same_way)) return {from};
    if (*fence == Fence::OneQuiet) return arrivals_up_to(from, false);
    const bool alone = *fence == Fence::PerPut || *fence == Fence::Immediate;
    return alone ? std::set{arrival_of(from)} : arrivals_up_to(from, true);
  }

  [[nodiscard]] std::vector<std::set<std::size_t>> waits() const {
    std::vector<std::set<std::size_t>> before(2 * plan_.tasks.size());
    std::map<QueueId, std::size_t> last;
    for (std::size_t t = 0; t < plan_.tasks.size(); ++t) {
      before[arrival_of(t)].insert(t);
      const auto [previous, first] = last.try_emplace(plan_.tasks[t].queue, t);
      if (!first) before[t].insert(previous->second);
      previous->second = t;
    }
    for (const Sync& sync : plan_.syncs) {
      before[sync.to.index()].merge(
          seen_by(sync.from.index(), sync.to.index(), sync.kind == SyncKind::Event, sync.fence));
    }
    for (const Barrier& barrier : plan_.barriers) {
      for (const TaskId to : barrier.to) {
        for (const TaskId from : barrier.from) {
          before[to.index()].merge(seen_by(from.index(), to.index(), true, {}));
        }
      }
    }
    return before;
  }

  // Events that happen together: the tasks of a collective, a single task, or the arrival of a put.
  [[nodiscard]] std::vector<std::vector<std::size_t>> units() const {
    std::vector<std::vector<std::size_t>> units;
    std::map<std::int32_t, std::size_t> group_unit;
    for (std::size_t t = 0; t < plan_.tasks.size(); ++t) {
      if (is_put(plan_, plan_.tasks[t])) units.push_back({arrival_of(t)});
      if (plan_.tasks[t].kind != TaskKind::Collective) {
        units.push_back({t});
        continue;
      }
      const auto [unit, first] = group_unit.try_emplace(plan_.tasks[t].group, units.size());
      if (first) units.emplace_back();
      units[unit->second].push_back(t);
    }
    return units;
  }

  void run_plan() {
    const std::vector<std::set<std::size_t>> before = waits();
    std::vector<std::vector<std::size_t>> left = units();
    std::vector<bool> over(before.size(), false);
    while (!left.empty()) {
      std::vector<std::size_t> ready;
      for (std::size_t u = 0; u < left.size(); ++u) {
        const bool can = std::ranges::all_of(left[u], [&](std::size_t t) {
          return std::ranges::all_of(before[t], [&](std::size_t b) { return bool{over[b]}; });
        });
        if (can) ready.push_back(u);
      }
      if (ready.empty()) throw Wrong{"no task can start"};
      const std::size_t chosen = ready[random_() % ready.size()];
      run_unit(left[chosen]);
      for (const std::size_t t : left[chosen]) over[t] = true;
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(chosen));
    }
  }

  // Memory.

  [[nodiscard]] Point content_of(AllocId alloc, const Point& block) const {
    Point content = block;
    const std::vector<bool>& holds = plan_.allocs[alloc.index()].holds;
    for (std::size_t i = 0; i < content.size(); ++i) {
      if (holds[i]) content[i] = 0;
    }
    return content;
  }

  Held read(AllocId alloc, const Point& block) {
    const Alloc& slot = plan_.allocs[alloc.index()];
    const Role role = find_buffer(plan_.program, slot.buffer)->role;
    const auto found = memory_.find(alloc.value);
    if (found != memory_.end()) {
      const auto cell = found->second.find(block);
      if (cell != found->second.end()) return cell->second;
    }
    if (slot.level == Level::Home && role == Role::In) return input(slot.buffer, block);
    throw Wrong{"`" + slot.name + "` of rank " + std::to_string(slot.rank.value) +
                " has nothing at a block that is read"};
  }

  void write(AllocId alloc, const Point& block, Held held) {
    auto& slot = memory_[alloc.value];
    if (!slot.empty() && content_of(alloc, slot.begin()->first) != content_of(alloc, block)) {
      slot.clear();
    }
    slot[block] = std::move(held);
  }

  [[nodiscard]] std::vector<Point> cells(const Ref& ref) const {
    std::vector<Point> all;
    const std::string& buffer = plan_.allocs[ref.alloc.index()].buffer;
    const int id = blocks_.find_buffer(buffer);
    const BufferTable& table = blocks_.buffers()[static_cast<std::size_t>(id)];
    for (const Box& box : ref.boxes) {
      for (const Point& p : points_in(box)) {
        BlockId block = 0;
        for (std::size_t i = 0; i < p.size(); ++i) block += p[i] * table.strides[i];
        if (blocks_.elements(id, block) > 0) all.push_back(p);
      }
    }
    return all;
  }

  // Tasks.

  // A put reads its source and writes its destination when it arrives.
  void run_unit(const std::vector<std::size_t>& events) {
    std::vector<std::size_t> tasks = events;
    if (events.front() >= plan_.tasks.size()) {
      tasks = {events.front() - plan_.tasks.size()};
    } else if (is_put(plan_, plan_.tasks[events.front()])) {
      return;
    }
    std::vector<std::vector<Held>> parts;
    for (const std::size_t t : tasks) {
      parts.emplace_back();
      for (const Ref& ref : plan_.tasks[t].reads) {
        for (const Point& p : cells(ref)) parts.back().push_back(read(ref.alloc, p));
      }
    }
    for (std::size_t i = 0; i < tasks.size(); ++i) run_task(plan_.tasks[tasks[i]], parts[i]);
  }

  void run_task(const Task& task, const std::vector<Held>& parts) {
    if (task.kind == TaskKind::Entry || task.kind == TaskKind::Exit) return;
    if (task.nest.empty()) return move(task, parts);
    const Leaf leaf(plan_.program, blocks_, *find_nest(plan_.program, task.nest),
                    static_cast<std::size_t>(task.stmt));
    const std::map<Place, std::vector<int>> made =
        task.kind == TaskKind::Compute ? compute(leaf, task, parts) : gather(leaf, task, parts);
    const bool finish = task.kind == TaskKind::Finalise || task.kind == TaskKind::Init;
    const bool stored = leaf.stmt().monoid == Monoid::Store;
    for (const Ref& ref : task.writes) {
      const std::string& buffer = plan_.allocs[ref.alloc.index()].buffer;
      for (const Point& p : cells(ref)) {
        const auto found = made.find({buffer, p});
        std::vector<int> symbols = found == made.end() ? std::vector<int>{} : found->second;
        if (found == made.end() && task.kind != TaskKind::Init) throw Wrong{"nothing to write"};
        if (stored && task.kind != TaskKind::Compute) {
          if (symbols.size() != 1) throw Wrong{"several values for one block"};
          write(ref.alloc, p, {.is_state = false, .symbols = symbols});
          continue;
        }
        if (ref.mode == WriteMode::Add) {
          const Held old = read(ref.alloc, p);
          if (!old.is_state) throw Wrong{"added to a value"};
          symbols.insert(symbols.end(), old.symbols.begin(), old.symbols.end());
        }
        std::ranges::sort(symbols);
        write(ref.alloc, p,
              finish || stored ? value(leaf.name(), buffer, p, symbols)
                               : Held{.is_state = true, .symbols = symbols});
      }
    }
  }

  static std::string part_of(const Ref& ref) {
    return ref.when ? ref.when->digit + "=" + std::to_string(ref.when->value) : "";
  }

  void move(const Task& task, const std::vector<Held>& parts) {
    std::size_t next = 0;
    for (const Ref& ref : task.writes) {
      for (const Point& p : cells(ref)) {
        Held held = parts.at(next++);
        const std::string part = part_of(ref);
        if (!part.empty() && held.part != part) held.part += part;
        write(ref.alloc, p, std::move(held));
      }
    }
  }

  // The symbol of each block, per part of the iterations that it serves ("": all).
  using Operands = std::map<Place, std::map<std::string, int>>;

  [[nodiscard]] int find_operand(const Operands& operands, const Leaf& leaf, const Place& place,
                                 const Point& point) const {
    const auto found = operands.find(place);
    if (found == operands.end()) throw Wrong{"an operand is not read"};
    for (const auto& [part, symbol] : found->second) {
      if (part.empty()) return symbol;
      const std::string digit = part.substr(0, part.find('='));
      const auto at = std::ranges::find(leaf.digits(), blocks_.find_digit(digit));
      if (at == leaf.digits().end()) throw Wrong{"a part for no iteration"};
      const std::int32_t value = point[static_cast<std::size_t>(at - leaf.digits().begin())];
      if (part == digit + "=" + std::to_string(value)) return symbol;
    }
    throw Wrong{"an operand is not read for this iteration"};
  }

  std::map<Place, std::vector<int>> compute(const Leaf& leaf, const Task& task,
                                            const std::vector<Held>& parts) {
    Operands operands;
    std::size_t next = 0;
    for (const Ref& ref : task.reads) {
      for (const Point& p : cells(ref)) {
        const Held& held = parts.at(next++);
        if (held.is_state) throw Wrong{"a state as operand"};
        const std::string part = part_of(ref);
        if (!held.part.empty() && held.part != part) throw Wrong{"a part of an operand"};
        operands[{plan_.allocs[ref.alloc.index()].buffer, p}][part] = held.symbols.at(0);
      }
    }
    std::map<Place, std::vector<int>> made;
    for (const Box& box : task.iter) {
      for (const Point& p : points_in(box)) {
        if (!leaf.runs(p)) continue;  // contributes the identity
        const int symbol =
            leaf.contribution(symbols_, p, [&](const std::string& b, const Point& q) {
              return find_operand(operands, leaf, {b, q}, p);
            });
        for (const Access& target : leaf.stmt().targets) {
          for (const Point& q : leaf.touched(target, p)) {
            made[{target.buffer, q}].push_back(symbol);
          }
        }
      }
    }
    return made;
  }

  // Combines source by source. Under lse an o must come with the l of the same source.
  std::map<Place, std::vector<int>> gather(const Leaf& leaf, const Task& task,
                                           const std::vector<Held>& parts) {
    const bool stored = leaf.stmt().monoid == Monoid::Store;
    const std::size_t width = leaf.stmt().monoid == Monoid::Lse ? leaf.stmt().targets.size() : 1;
    std::map<Place, std::vector<int>> made;
    std::size_t next = 0;
    for (std::size_t first = 0; first < task.reads.size(); first += width) {
      std::map<Place, std::vector<int>> source;
      for (std::size_t i = first; i < first + width; ++i) {
        const std::string& buffer = plan_.allocs[task.reads[i].alloc.index()].buffer;
        for (const Point& p : cells(task.reads[i])) {
          const Held& held = parts.at(next++);
          if (held.is_state == stored) throw Wrong{"a value as state, or a state as value"};
          if (!held.part.empty()) throw Wrong{"a part among what is combined"};
          source[{buffer, p}] = held.symbols;
        }
      }
      if (width > 1 && !is_tied(leaf, source)) throw Wrong{"an o without its l"};
      for (const auto& [place, symbols] : source) {
        made[place].insert(made[place].end(), symbols.begin(), symbols.end());
      }
    }
    return made;
  }

  // True if every o has an l at the shared digits, made of the same contributions.
  [[nodiscard]] bool is_tied(const Leaf& leaf,
                             const std::map<Place, std::vector<int>>& source) const {
    const std::string& o = leaf.stmt().targets[0].buffer;
    const std::string& l = leaf.stmt().targets[1].buffer;
    const auto digits = [&](const std::string& b) -> const std::vector<int>& {
      return blocks_.buffers()[static_cast<std::size_t>(blocks_.find_buffer(b))].digits;
    };
    return std::ranges::all_of(source, [&](const auto& entry) {
      if (entry.first.first != o) return true;
      Point partner;
      for (const int digit : digits(l)) {
        const auto found = std::ranges::find(digits(o), digit) - digits(o).begin();
        partner.push_back(entry.first.second[static_cast<std::size_t>(found)]);
      }
      const auto weight = source.find({l, partner});
      return weight != source.end() && weight->second == entry.second;
    });
  }

  // What the home `alloc` holds of a block, or null.
  [[nodiscard]] const Held* held_at(const Alloc& alloc, const Point& p) const {
    const auto slot = memory_.find(static_cast<std::int32_t>(&alloc - plan_.allocs.data()));
    if (slot == memory_.end()) return nullptr;
    const auto cell = slot->second.find(p);
    return cell == slot->second.end() ? nullptr : &cell->second;
  }

  // A buffer with partial axes has one home per coordinate along them, each with a part of one
  // state. Their finalised contributions together must be those of the program.
  [[nodiscard]] bool is_right(const Alloc& alloc, const Point& p) {
    const BufferTable& table =
        blocks_.buffers()[static_cast<std::size_t>(blocks_.find_buffer(alloc.buffer))];
    const Held& wanted = wanted_.at({alloc.buffer, p});
    const Held* const own = held_at(alloc, p);
    if (own == nullptr) return false;
    if (table.partial_axes.empty()) return *own == wanted;
    std::vector<int> symbols;
    const std::int64_t parts = blocks_.extent(table.partial_axes);
    for (std::int64_t part = 0; part < parts; ++part) {
      const RankId rank = blocks_.with_coordinate(alloc.rank, table.partial_axes, part);
      const auto home = std::ranges::find_if(plan_.allocs, [&](const Alloc& other) {
        return other.level == Level::Home && other.buffer == alloc.buffer && other.rank == rank;
      });
      const Held* const held = home == plan_.allocs.end() ? nullptr : held_at(*home, p);
      if (held == nullptr || held->is_state) return false;
      const auto made = finalised_.find(held->symbols.at(0));
      if (made == finalised_.end()) return false;
      symbols.insert(symbols.end(), made->second.begin(), made->second.end());
    }
    std::ranges::sort(symbols);
    return finalised_.at(wanted.symbols.at(0)) == symbols;
  }

  std::optional<std::string> compare() {
    for (const Alloc& alloc : plan_.allocs) {
      const Role role = find_buffer(plan_.program, alloc.buffer)->role;
      if (alloc.level != Level::Home || role != Role::Out) continue;
      const Region home = blocks_.home(blocks_.find_buffer(alloc.buffer), alloc.rank);
      for (const Point& p : all_blocks(alloc.buffer)) {
        bool mine = true;
        for (std::size_t i = 0; i < p.size(); ++i)
          mine = mine && (home[i] == kAll || home[i] == p[i]);
        if (mine && !is_right(alloc, p)) {
          return "`" + alloc.buffer + "` is wrong at rank " + std::to_string(alloc.rank.value);
        }
      }
    }
    return std::nullopt;
  }

  const Plan& plan_;
  Blocks blocks_;
  std::mt19937_64 random_;
  Symbols symbols_;
  std::map<Place, Held> wanted_;
  std::map<int, std::vector<int>> finalised_;  // per symbol of a value: the contributions in it
  std::map<std::int32_t, std::map<Point, Held>> memory_;  // per alloc: one content
};

}  // namespace

std::optional<std::string> replay(const Plan& plan, std::uint64_t seed) {
  return Machine(plan, seed).run();
}

}  // namespace harpe::test
