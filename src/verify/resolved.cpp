#include "verify/resolved.h"

#include <algorithm>

namespace harpe::verifier {

constexpr std::int64_t kMaxCells = std::int64_t{1} << 27;

class Resolver {
 public:
  Resolver(const Plan& plan, const Words& words, Resolved& out)
      : plan_(plan), model_(words.model()), words_(words), out_(out) {}

  Checked<Ok> add_allocs() {
    for (const Alloc& alloc : plan_.allocs) {
      const std::int32_t footprint = footprint_of(model_.find_buffer(alloc.buffer), alloc.holds);
      out_.allocs.push_back({.footprint = footprint, .first_cell = out_.cell_count});
      out_.cell_count += out_.footprints[static_cast<std::size_t>(footprint)].cells;
      if (out_.cell_count > kMaxCells) {
        return make_diag(DiagCode::V203, {{"what", "all slots together"}, {"limit", kMaxCells}});
      }
    }
    seen_.assign(static_cast<std::size_t>(out_.cell_count), -1);
    content_.resize(plan_.allocs.size());
    content_task_.assign(plan_.allocs.size(), -1);
    return Ok{};
  }

  Checked<Ok> add_tasks(std::size_t tasks) {
    std::size_t refs = 0;
    for (std::size_t task = 0; task < tasks; ++task) {
      refs += plan_.tasks[task].reads.size() + plan_.tasks[task].writes.size();
    }
    out_.refs_.reserve(refs);
    for (std::size_t task = 0; task < tasks; ++task) {
      out_.first_read_.push_back(out_.refs_.size());
      for (const Ref& ref : plan_.tasks[task].reads) HP_REQUIRE_OK(add_ref(task, ref));
      out_.first_write_.push_back(out_.refs_.size());
      // Two refs of a task may read the same block, but not write it.
      ++token_;
      for (const Ref& ref : plan_.tasks[task].writes) HP_REQUIRE_OK(add_ref(task, ref));
      out_.statements.push_back(statement_of(plan_.tasks[task]));
    }
    out_.first_read_.push_back(out_.refs_.size());
    return Ok{};
  }

 private:
  std::int32_t footprint_of(int buffer, const std::vector<bool>& holds) {
    const auto found = std::ranges::find_if(out_.footprints, [&](const Footprint& footprint) {
      return footprint.buffer == buffer && footprint.holds == holds;
    });
    const auto index = static_cast<std::int32_t>(found - out_.footprints.begin());
    if (found == out_.footprints.end()) {
      out_.footprints.push_back(make_footprint(model_, buffer, holds));
    }
    return index;
  }

  std::int32_t statement_of(const Task& task) const {
    if (task.nest.empty()) return -1;
    return model_.nests[static_cast<std::size_t>(model_.find_nest(task.nest))].first_statement +
           task.stmt;
  }

  Checked<Ok> add_ref(std::size_t task, const Ref& line) {
    const Footprint& footprint = out_.footprint(line.alloc.value);
    ResolvedRef ref{.alloc = line.alloc.value,
                    .buffer = footprint.buffer,
                    .content = -1,
                    .mode = line.mode,
                    .cut = {},
                    .first = out_.cells_.size(),
                    .count = 0};
    if (line.when) {
      ref.cut = {.digit = model_.find_digit(line.when->digit), .value = line.when->value};
    }
    if (line.mode == WriteMode::Read) ++token_;
    for (const Box& box : line.boxes) HP_REQUIRE_OK(add_box(task, box, footprint, ref));
    ref.count = out_.cells_.size() - ref.first;
    if (ref.count > 0) {
      const auto at = static_cast<std::size_t>(ref.alloc);
      if (content_task_[at] == static_cast<std::int64_t>(task) && content_[at].id != ref.content) {
        return mixed(task, ref, content_[at].block, out_.cells_[ref.first].block);
      }
      content_task_[at] = static_cast<std::int64_t>(task);
      content_[at] = {.id = ref.content, .block = out_.cells_[ref.first].block};
    }
    out_.refs_.push_back(ref);
    return Ok{};
  }

  Checked<Ok> add_box(std::size_t task, const Box& box, const Footprint& footprint,
                      ResolvedRef& ref) {
    const BufferModel& buffer = model_.buffers[static_cast<std::size_t>(footprint.buffer)];
    point_.clear();
    std::int64_t points = 1;
    for (const Range& range : box) {
      point_.push_back(range.lo);
      points *= range.hi - range.lo;
    }
    points_ += points;
    if (points_ > kMaxCells) {
      return make_diag(DiagCode::V203,
                       {{"what", "what all tasks touch together"}, {"limit", kMaxCells}});
    }
    // Row by row: along the last digit, all three numbers increase by a constant stride.
    rows_.assign(box.begin(), box.end());
    const std::int64_t count = box.empty() ? 1 : box.back().hi - box.back().lo;
    if (!box.empty()) rows_.back().hi = rows_.back().lo + 1;
    do {
      Row row{.count = count};
      row.begin(&Place::block, buffer.radix.strides, point_);
      row.begin(&Place::content, footprint.content_strides, point_);
      row.begin(&Place::local, footprint.cell_strides, point_);
      HP_REQUIRE_OK(add_row(task, row, buffer, ref));
    } while (next_point(rows_, point_));
    return Ok{};
  }

  struct Place {
    std::int64_t block = 0;
    std::int64_t content = 0;
    std::int64_t local = 0;
  };
  struct Row {
    Place first = {};
    Place step = {};
    std::int64_t count = 0;
    void begin(std::int64_t Place::* number, std::span<const std::int64_t> strides,
               std::span<const std::int32_t> point) {
      first.*number = product(strides, point);
      step.*number = strides.empty() ? 0 : strides.back();
    }
  };

  Checked<Ok> add_row(std::size_t task, const Row& row, const BufferModel& buffer,
                      ResolvedRef& ref) {
    const auto alloc = static_cast<std::size_t>(ref.alloc);
    auto [block, content, local] = row.first;
    for (std::int64_t i = 0; i < row.count;
         ++i, block += row.step.block, content += row.step.content, local += row.step.local) {
      if (buffer.is_empty(block)) continue;
      if (out_.cells_.size() == ref.first) {
        ref.content = static_cast<std::int32_t>(content);
        const RankId rank = plan_.allocs[alloc].rank;
        const bool is_home = plan_.allocs[alloc].level == Level::Home;
        if (is_home && !model_.is_home(ref.buffer, rank, block)) {
          return make_diag(DiagCode::V212, {{"task", words_.task(static_cast<std::int64_t>(task))},
                                            {"block", words_.block(ref.buffer, block)},
                                            {"rank", rank.value}});
        }
      } else if (content != ref.content) {
        return mixed(task, ref, out_.cells_[ref.first].block, block);
      }
      const Cell cell{.local = static_cast<std::int32_t>(local),
                      .block = static_cast<std::int32_t>(block)};
      std::int32_t& seen = seen_[out_.cell_index(ref, cell)];
      if (seen == token_) {
        return make_diag(DiagCode::V213,
                         {{"task", words_.task(static_cast<std::int64_t>(task))},
                          {"verb", ref.mode == WriteMode::Read ? "reads" : "writes"},
                          {"block", words_.block(ref.buffer, block)},
                          {"alloc", words_.alloc(ref.alloc)}});
      }
      seen = token_;
      out_.cells_.push_back(cell);
    }
    return Ok{};
  }

  Diag mixed(std::size_t task, const ResolvedRef& ref, std::int64_t first,
             std::int64_t second) const {
    return make_diag(DiagCode::V211, {{"task", words_.task(static_cast<std::int64_t>(task))},
                                      {"first", words_.block(ref.buffer, first)},
                                      {"second", words_.block(ref.buffer, second)},
                                      {"alloc", words_.alloc(ref.alloc)}});
  }

  struct Content {
    std::int32_t id = -1;
    std::int64_t block = 0;
  };

  const Plan& plan_;
  const Model& model_;
  const Words& words_;
  Resolved& out_;
  std::vector<std::int32_t> seen_;  // per cell: token of the last ref or task that named it
  std::int32_t token_ = 0;
  std::int64_t points_ = 0;       // in all boxes so far, with empty blocks
  std::vector<Content> content_;  // per allocation: what the last task using it keeps there
  std::vector<std::int64_t> content_task_;
  std::vector<std::int32_t> point_;
  Box rows_;
};

Checked<Resolved> Resolved::make(const Plan& plan, const Words& words, const Scope& scope) {
  Resolved out;
  Resolver resolver(plan, words, out);
  HP_REQUIRE_OK(resolver.add_allocs());
  HP_REQUIRE_OK(resolver.add_tasks(scope.tasks));
  return out;
}

}  // namespace harpe::verifier
