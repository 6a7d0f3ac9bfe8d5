#include "ir/blocks.h"
#include "ir/text.h"
#include "plan/text.h"
#include "plan/text_parts.h"
#include "support/hash.h"

namespace harpe {
namespace {

using plan_text::append;
using Extents = std::vector<std::int32_t>;

void append_box(std::string& out, const Box& box, std::span<const std::int32_t> extents) {
  out += '[';
  for (std::size_t i = 0; i < box.size(); ++i) {
    if (i > 0) out += ", ";
    const Range range = box[i];
    if (i < extents.size() && range == Range{0, extents[i]}) {
      out += '*';
      continue;
    }
    append(out, range.lo);
    if (std::int64_t{range.lo} + 1 == range.hi) continue;
    out += "..";
    append(out, range.hi);
  }
  out += ']';
}

class Printer {
 public:
  Printer(const Plan& plan, const Blocks& blocks) : plan_(plan) {
    const auto extents_of = [&](const std::vector<int>& digits) {
      Extents extents;
      for (const int digit : digits) {
        extents.push_back(blocks.digits()[static_cast<std::size_t>(digit)].extent);
      }
      return extents;
    };
    for (const BufferTable& table : blocks.buffers()) {
      buffers_.emplace_back(table.name, extents_of(table.digits));
    }
    for (const Nest& nest : plan.program.nests) {
      nests_.emplace_back(nest.name, extents_of(iteration_digits(plan.program, blocks, nest)));
    }
    for (const Alloc& alloc : plan.allocs) alloc_extents_.push_back(find(buffers_, alloc.buffer));
  }

  std::string print() {
    out_ = "plan " + plan_.form.name + " for " + plan_.program.name + " on " + plan_.mesh.name +
           " {\n";
    for (std::size_t i = 0; i < plan_.allocs.size(); ++i) print_alloc(i);
    for (std::size_t i = 0; i < plan_.queues.size(); ++i) print_queue(i);
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) print_task(i);
    for (const Sync& sync : plan_.syncs) print_sync(sync);
    for (const Barrier& barrier : plan_.barriers) print_barrier(barrier);
    out_ += "}\n";
    return std::move(out_);
  }

 private:
  using Named = std::vector<std::pair<std::string, Extents>>;

  // Returns no extents for an unknown name: its boxes print with all ranges spelled out.
  static std::span<const std::int32_t> find(const Named& named, std::string_view name) {
    for (const auto& [key, extents] : named) {
      if (key == name) return extents;
    }
    return {};
  }

  void word(std::string_view text) {
    out_ += ' ';
    out_ += text;
  }
  void number(std::int64_t value) {
    out_ += ' ';
    append(out_, value);
  }
  void number(std::string_view keyword, std::int64_t value) {
    word(keyword);
    number(value);
  }
  void begin(std::string_view keyword) {
    out_ += "  ";
    out_ += keyword;
  }
  void begin(std::string_view keyword, std::size_t id) {
    begin(keyword);
    number(static_cast<std::int64_t>(id));
  }
  void quoted(std::string_view text) {
    out_ += " \"";
    out_ += text;
    out_ += '"';
  }

  void print_alloc(std::size_t i) {
    begin("alloc", i);
    out_ += ' ';
    plan_text::append_alloc(out_, plan_.allocs[i]);
    out_ += '\n';
  }

  void print_queue(std::size_t i) {
    begin("lane", i);
    number("rank", plan_.queues[i].rank.value);
    word(harpe::print(plan_.queues[i].kind));
    out_ += '\n';
  }

  void print_task(std::size_t i) {
    const Task& task = plan_.tasks[i];
    begin("task", i);
    number("lane", task.queue.value);
    word(harpe::print(task.kind));
    if (task.kind == TaskKind::Collective || task.collective != CollectiveOp::AllGather) {
      word(harpe::print(task.collective));
    }
    const bool moves = task.kind == TaskKind::Copy || task.kind == TaskKind::Collective;
    if (moves || task.how != How::Bulk) word(harpe::print(task.how));
    if (moves || task.via != Via::Sm) {
      word("via");
      word(harpe::print(task.via));
    }
    if (task.wire) {
      word("wire");
      word(harpe::print(*task.wire));
    }
    if (task.bytes != 0) number("bytes", task.bytes);
    if (!task.nest.empty()) {
      word(task.nest);
      out_ += '.';
      append(out_, task.stmt);
    }
    if (task.kernel != -1) number("kernel", task.kernel);
    if (!task.leaf_kernel.empty()) {
      word("leaf");
      quoted(task.leaf_kernel);
    }
    if (task.group != -1) number("group", task.group);
    print_accesses(task);
    out_ += '\n';
  }

  void print_accesses(const Task& task) {
    if (!task.iter.empty()) {
      word("iter ");
      const std::span<const std::int32_t> extents = find(nests_, task.nest);
      for (const Box& box : task.iter) append_box(out_, box, extents);
    }
    for (const Ref& ref : task.reads) print_ref("r", ref);
    for (const Ref& ref : task.writes) print_ref(harpe::print(ref.mode), ref);
  }

  void print_ref(std::string_view keyword, const Ref& ref) {
    number(keyword, ref.alloc.value);
    std::span<const std::int32_t> extents;
    if (ref.alloc.valid() && ref.alloc.index() < alloc_extents_.size()) {
      extents = alloc_extents_[ref.alloc.index()];
    }
    for (const Box& box : ref.boxes) append_box(out_, box, extents);
    if (ref.when) {
      word("when");
      word(ref.when->digit);
      out_ += '=';
      append(out_, ref.when->value);
    }
  }

  void print_sync(const Sync& sync) {
    begin("sync");
    number(sync.from.value);
    number("->", sync.to.value);
    word("via");
    word(harpe::print(sync.kind));
    if (sync.flag != -1) number(sync.flag);
    if (sync.fence) {
      word("fence");
      word(harpe::print(*sync.fence));
    }
    out_ += '\n';
  }

  void print_barrier(const Barrier& barrier) {
    const auto list = [&](const std::vector<TaskId>& tasks) {
      for (std::size_t i = 0; i < tasks.size(); ++i) {
        out_ += i == 0 ? " " : ", ";
        append(out_, tasks[i].value);
      }
    };
    begin("barrier");
    list(barrier.from);
    word("->");
    list(barrier.to);
    word("via counter");
    if (barrier.flag != -1) number(barrier.flag);
    out_ += '\n';
  }

  const Plan& plan_;
  Named buffers_;
  Named nests_;
  std::vector<std::span<const std::int32_t>> alloc_extents_;  // per alloc, into buffers_
  std::string out_;
};

// Everything after the first line.
std::string print_body(const Plan& plan) {
  const Checked<Blocks> blocks = Blocks::make(plan.program, plan.mesh, plan.form);
  HP_CHECK(blocks.ok(), render(blocks.error()));
  return print(plan.program) + print(plan.mesh) + print(plan.form) + Printer(plan, *blocks).print();
}

}  // namespace

std::string print_box(const Box& box, std::span<const std::int32_t> extents) {
  std::string out;
  append_box(out, box, extents);
  return out;
}

std::string print_plan(const Plan& plan) {
  const std::string body = print_body(plan);
  return "plan version " + std::to_string(kPlanVersion) + " hash \"" + hash_text(body) + "\"\n" +
         body;
}

std::string hash_plan(const Plan& plan) { return hash_text(print_body(plan)); }

}  // namespace harpe
