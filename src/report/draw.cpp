#include "report/draw.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/blocks.h"
#include "ir/text.h"
#include "report/block_names.h"
#include "support/check.h"

namespace harpe {
namespace {

// The position of a compute task: its nest, and the turn of each of its loops.
struct Place {
  int nest = 0;
  std::vector<std::int64_t> turns;
  friend auto operator<=>(const Place&, const Place&) = default;
};

// Data from one rank; buffers with the same blocks and source share a line.
struct Line {
  std::string blocks;
  std::string from;
  std::vector<std::string> buffers;
  std::string_view kind = "";  // for received results: "+ " is folded in, "= " stays as it is
};

class Artist {
 public:
  Artist(const Plan& plan, const Blocks& blocks)
      : plan_(plan), blocks_(blocks), names_(plan, blocks) {}

  Drawing draw() {
    drawing_.title = plan_.program.name + " on " + print_axes(plan_.mesh);
    draw_homes();
    for (std::size_t task = 0; task < plan_.tasks.size(); ++task) place_compute(task);
    for (std::size_t task = 0; task < plan_.tasks.size(); ++task) draw_task(task);
    for (auto& [place, cells] : cells_) finish(place, cells);
    return std::move(drawing_);
  }

 private:
  struct Cell {
    std::vector<Line> arrives;
    std::vector<std::string> works;
    std::vector<Line> receives;
  };
  using Cells = std::vector<Cell>;

  static std::string print_axes(const Mesh& mesh) {
    std::string out;
    for (const MeshAxis& axis : mesh.axes) {
      out += (out.empty() ? "" : ",") + axis.name + "=" + std::to_string(axis.size);
    }
    return out;
  }

  [[nodiscard]] std::size_t rank_of(const Task& task) const {
    return plan_.queues[task.queue.index()].rank.index();
  }

  void draw_homes() {
    std::vector<std::vector<Line>> homes(static_cast<std::size_t>(plan_.mesh.ranks()));
    for (const Alloc& alloc : plan_.allocs) {
      if (alloc.level != Level::Home) continue;
      const int buffer = blocks_.find_buffer(alloc.buffer);
      const BufferTable& table = blocks_.buffers()[static_cast<std::size_t>(buffer)];
      const Region region = blocks_.home(buffer, alloc.rank);
      Box box;
      for (std::size_t i = 0; i < region.size(); ++i) {
        const auto digit = static_cast<std::size_t>(table.digits[i]);
        box.push_back(region[i] == kAll ? Range{0, blocks_.digits()[digit].extent}
                                        : Range{region[i], region[i] + 1});
      }
      add_line(homes[alloc.rank.index()],
               {.blocks = names_.of(table.digits, {box}), .from = "", .buffers = {alloc.buffer}});
    }
    for (const std::vector<Line>& lines : homes) {
      std::vector<std::string>& home = drawing_.homes.emplace_back();
      for (const Line& line : lines) home.push_back(print_blocks(line));
    }
  }

  // The turn of a loop at which `rank` reaches `value` (commir.md 4.1, solved for time).
  [[nodiscard]] std::int64_t turn_of(const For& loop, std::int64_t value, std::int64_t extent,
                                     RankId rank,
                                     const std::map<std::string, std::int64_t>& outer) const {
    std::vector<int> axes;
    std::int64_t turn = value - loop.offset;
    for (const std::string& term : loop.skew) {
      if (const int axis = find_axis(blocks_.mesh(), term); axis >= 0) {
        axes.push_back(axis);
      } else {
        turn -= outer.at(term);
      }
    }
    turn = ((turn - blocks_.coordinate(rank, axes)) % extent + extent) % extent;
    return loop.reverse ? extent - 1 - turn : turn;
  }

  void place_compute(std::size_t index) {
    const Task& task = plan_.tasks[index];
    if (task.kind != TaskKind::Compute) return;
    const Nest& nest = *find_nest(plan_.program, task.nest);
    Place place{.nest = static_cast<int>(&nest - plan_.program.nests.data()), .turns = {}};
    const std::vector<int> digits = iteration_digits(plan_.program, blocks_, nest);
    std::map<std::string, std::int64_t> values;
    if (const NestForm* const form = find_nest(plan_.form, task.nest)) {
      for (const NestItem& item : form->items) {
        const auto* const loop = std::get_if<For>(&item);
        if (loop == nullptr) continue;
        const int digit = blocks_.find_digit(loop->digit);
        const auto at = std::ranges::find(digits, digit) - digits.begin();
        const std::int64_t value = task.iter.front()[static_cast<std::size_t>(at)].lo;
        const std::int64_t extent = blocks_.digits()[static_cast<std::size_t>(digit)].extent;
        place.turns.push_back(
            turn_of(*loop, value, extent, plan_.queues[task.queue.index()].rank, values));
        values[loop->digit] = value;
      }
    }
    places_[index] = place;
    cells_.try_emplace(std::move(place), Cells(drawing_.homes.size()));
  }

  void draw_task(std::size_t index) {
    const Task& task = plan_.tasks[index];
    if (task.kind == TaskKind::Compute) {
      const std::string work = names_.of_work(task);
      Cell& cell = cells_.at(places_.at(index))[rank_of(task)];
      cell.works.push_back(work.empty() ? "all" : work);
      return;
    }
    if (task.kind == TaskKind::Copy) {
      for (std::size_t i = 0; i < task.writes.size(); ++i) {
        draw_move(index, task.writes[i], {&task.reads[i]});
      }
    }
    if (task.kind == TaskKind::Collective) draw_collective(index);
  }

  void draw_collective(std::size_t index) {
    const Task& task = plan_.tasks[index];
    if (task.collective == CollectiveOp::ReduceScatter) {
      std::vector<const Ref*> sources;
      for (const Ref& read : task.reads) sources.push_back(&read);
      for (const Ref& write : task.writes) draw_move(index, write, sources);
      return;
    }
    for (const Ref& write : task.writes) {
      std::vector<const Ref*> sources;
      for (std::size_t i = 0; i < task.writes.size(); ++i) {
        if (task.writes[i].alloc == write.alloc) sources.push_back(&task.reads[i]);
      }
      if (&write == first_of(task, write.alloc)) draw_move(index, write, sources);
    }
  }

  static const Ref* first_of(const Task& task, AllocId alloc) {
    return &*std::ranges::find(task.writes, alloc, &Ref::alloc);
  }

  // Data from other ranks for one slot: before the work that uses it, or after the work that made
  // it.
  void draw_move(std::size_t index, const Ref& write, const std::vector<const Ref*>& sources) {
    const Alloc& to = plan_.allocs[write.alloc.index()];
    std::set<std::int32_t> ranks;
    std::vector<Box> boxes;
    for (const Ref* const source : sources) {
      const RankId from = plan_.allocs[source->alloc.index()].rank;
      if (from == to.rank) continue;
      ranks.insert(from.value);
      boxes.insert(boxes.end(), source->boxes.begin(), source->boxes.end());
    }
    if (ranks.empty()) return;
    const int buffer = blocks_.find_buffer(to.buffer);
    Line line{
        .blocks = names_.of(blocks_.buffers()[static_cast<std::size_t>(buffer)].digits, boxes),
        .from = print_values(ranks),
        .buffers = {to.buffer}};
    const bool staged = to.level == Level::Stage;
    if (!staged) line.kind = to.level == Level::Home || is_stored(to.buffer) ? "= " : "+ ";
    const auto place = staged ? place_after(index, write) : place_before(index, sources);
    if (!place) return;
    Cell& cell = cells_.at(*place)[to.rank.index()];
    add_line(staged ? cell.arrives : cell.receives, std::move(line));
  }

  // True if no contributions to the buffer are added: each block is made once.
  [[nodiscard]] bool is_stored(const std::string& buffer) const {
    return std::ranges::any_of(plan_.program.nests, [&](const Nest& nest) {
      return std::ranges::any_of(nest.stmts, [&](const Stmt& stmt) {
        return stmt.monoid == Monoid::Store &&
               std::ranges::find(stmt.targets, buffer, &Access::buffer) != stmt.targets.end();
      });
    });
  }

  static void add_line(std::vector<Line>& lines, Line line) {
    for (Line& known : lines) {
      const bool alike =
          known.blocks == line.blocks && known.from == line.from && known.kind == line.kind;
      if (!alike) continue;
      if (std::ranges::find(known.buffers, line.buffers[0]) == known.buffers.end()) {
        known.buffers.push_back(line.buffers[0]);
      }
      return;
    }
    lines.push_back(std::move(line));
  }

  static bool meet(const Ref& one, const Ref& other) {
    const auto overlap = [](const Box& a, const Box& b) {
      return std::ranges::equal(
          a, b, [](const Range& x, const Range& y) { return x.lo < y.hi && y.lo < x.hi; });
    };
    return one.alloc == other.alloc && std::ranges::any_of(one.boxes, [&](const Box& box) {
             return std::ranges::any_of(other.boxes,
                                        [&](const Box& second) { return overlap(box, second); });
           });
  }

  // The work that next reads these blocks, or else the work that reads the slot they are passed on
  // to.
  [[nodiscard]] std::optional<Place> place_after(std::size_t index, const Ref& written) const {
    std::optional<std::pair<std::size_t, const Ref*>> passed_on;
    for (std::size_t i = index + 1; i < plan_.tasks.size(); ++i) {
      const Task& task = plan_.tasks[i];
      const auto read =
          std::ranges::find_if(task.reads, [&](const Ref& ref) { return meet(ref, written); });
      if (read == task.reads.end()) continue;
      if (task.kind == TaskKind::Compute) return places_.at(i);
      const auto pair = static_cast<std::size_t>(read - task.reads.begin());
      if (!passed_on && pair < task.writes.size()) passed_on.emplace(i, &task.writes[pair]);
    }
    return passed_on ? place_after(passed_on->first, *passed_on->second) : std::nullopt;
  }

  // The work that made the contents of the first source: the last one there that wrote it or, if it
  // was passed on, the last one there.
  [[nodiscard]] std::optional<Place> place_before(std::size_t index,
                                                  const std::vector<const Ref*>& sources) const {
    const AllocId alloc = sources.front()->alloc;
    const RankId rank = plan_.allocs[alloc.index()].rank;
    std::optional<Place> last;
    for (std::size_t i = index; i-- > 0;) {
      const Task& task = plan_.tasks[i];
      if (task.kind != TaskKind::Compute || plan_.queues[task.queue.index()].rank != rank) continue;
      const bool makes = std::ranges::find(task.writes, alloc, &Ref::alloc) != task.writes.end();
      if (makes) return places_.at(i);
      if (!last) last = places_.at(i);
    }
    return last;
  }

  static std::string print_blocks(const Line& line) {
    std::string text;
    for (const std::string& buffer : line.buffers) text += (text.empty() ? "" : ", ") + buffer;
    return text + (line.blocks.empty() ? "" : " " + line.blocks);
  }

  static std::vector<std::string> print_lines(const std::vector<Line>& lines) {
    std::vector<std::string> out;
    for (const Line& line : lines) {
      out.push_back(std::string(line.kind) + print_blocks(line) + " < " + line.from);
    }
    return out;
  }

  void finish(const Place& place, const Cells& cells) {
    const Nest& nest = plan_.program.nests[static_cast<std::size_t>(place.nest)];
    DrawnStep step{.label = nest.name, .ranks = {}};
    const NestForm* const form = find_nest(plan_.form, nest.name);
    std::size_t turn = 0;
    for (std::size_t i = 0; form != nullptr && i < form->items.size(); ++i) {
      const auto* const loop = std::get_if<For>(&form->items[i]);
      if (loop == nullptr) continue;
      step.label += ", " + loop->digit + " step " + std::to_string(place.turns[turn++]);
    }
    for (const Cell& cell : cells) {
      step.ranks.push_back({.arrives = print_lines(cell.arrives),
                            .works = cell.works,
                            .receives = print_lines(cell.receives)});
    }
    drawing_.steps.push_back(std::move(step));
  }

  const Plan& plan_;
  const Blocks& blocks_;
  BlockNames names_;
  Drawing drawing_;
  std::map<std::size_t, Place> places_;  // by compute task
  std::map<Place, Cells> cells_;
};

}  // namespace

Drawing draw(const Plan& plan) {
  const Checked<Blocks> blocks = Blocks::make(plan.program, plan.mesh, plan.form);
  HP_CHECK(blocks.ok(), "a plan's form fits its program");
  return Artist(plan, *blocks).draw();
}

}  // namespace harpe
