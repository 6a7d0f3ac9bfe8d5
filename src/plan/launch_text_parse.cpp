#include <algorithm>
#include <limits>
#include <utility>

#include "ir/blocks.h"
#include "plan/launch_text.h"
#include "plan/launch_text_order.h"
#include "plan/launch_text_places.h"
#include "plan/text.h"
#include "plan/text_lines.h"
#include "plan/text_parts.h"

namespace harpe::launch {
namespace {

using plan_text::expect_end_of_line;
using plan_text::expect_id;
using plan_text::parse_count;
using plan_text::parse_rank;
using plan_text::parse_reference;
using plan_text::parse_small;

constexpr std::int32_t kMostTimes = 65'536;  // limit of `times` and of `joins`

// One more than the largest group of a collective.
std::size_t count_groups(const Plan& plan) {
  std::int32_t count = 0;
  for (const Task& task : plan.tasks) count = std::max(count, task.group + 1);
  return static_cast<std::size_t>(count);
}

class LaunchParser {
 public:
  LaunchParser(const Plan& plan, const Blocks& blocks, plan_text::TextLines& lines)
      : plan_(plan),
        blocks_(blocks),
        lines_(lines),
        groups_(count_groups(plan)),
        places_(plan, blocks) {}

  Checked<LaunchPlan> parse() {
    while (true) {
      HP_TRY(std::optional<Cursor> line, lines_.next());
      if (!line) break;
      const Checked<Ok> done = parse_line(*line);
      if (!done.ok()) return lines_.placed(done.error());
      if (late_) return *late_;
    }
    if (!last_) return lines_.missing("`launches`");
    end_kernel();
    if (late_) return *late_;
    return std::move(out_);
  }

 private:
  Checked<Ok> parse_line(Cursor& line) {
    HP_TRY(const LineKind kind, take_kind(line, last_));
    last_ = kind;
    HP_REQUIRE_OK(parse_rest(line, kind));
    return expect_end_of_line(line);
  }

  Checked<Ok> parse_rest(Cursor& line, LineKind kind) {
    switch (kind) {
      case LineKind::Header:
        return parse_header(line);
      case LineKind::Partials:
        return parse_partials(line);
      case LineKind::Box:
        return parse_box(line);
      case LineKind::Signal:
        return parse_signal(line);
      case LineKind::Launch:
        end_kernel();
        return parse_launch(line);
      case LineKind::Kernel:
        end_kernel();
        return parse_kernel(line);
      case LineKind::Arrival:
        return parse_arrival(line);
      case LineKind::Panel:
        return parse_panel(line);
      case LineKind::Addend:
        return parse_addend(line);
      case LineKind::Map:
        return parse_map(line);
      case LineKind::FusedStore:
        return parse_fused_store(line);
      case LineKind::FusedCopy:
        return parse_fused_copy(line);
    }
    return Ok{};
  }

  [[nodiscard]] Kernel& kernel() { return out_.launches.back().kernels.back(); }
  [[nodiscard]] RankId rank() const { return out_.launches.back().rank; }

  // Checks that need the kernel's last line, because panels name fused stores that follow them.
  // Then repeats the kernel `times` times.
  void end_kernel() {
    if (times_ == 0) return;
    const std::size_t stores = kernel().fused_stores.size();
    for (const auto& [store, where] : fused_) {
      if (late_ || std::cmp_less(store, stores)) continue;
      late_ = make_diag(DiagCode::V103,
                        {{"what", "fused store"},
                         {"found", store},
                         {"expected", stores == 0 ? "one of the kernel's, and there is none"
                                                  : "within 0.." + std::to_string(stores - 1)}});
      late_->where = where;
    }
    fused_.clear();
    std::vector<Kernel>& kernels = out_.launches.back().kernels;
    const Kernel repeated = kernels.back();
    kernels.insert(kernels.end(), static_cast<std::size_t>(times_ - 1), repeated);
    times_ = 0;
  }

  Checked<Ok> parse_header(Cursor& line) {
    HP_REQUIRE_OK(line.expect("version"));
    const Token version_token = line.peek();
    HP_TRY(const std::int64_t version, line.expect_integer("a version"));
    if (version < 1 || version > kLaunchesVersion) {
      return line.locate(
          make_diag(DiagCode::V102,
                    {{"what", "launches"}, {"found", version}, {"supported", kLaunchesVersion}}),
          version_token);
    }
    HP_REQUIRE_OK(line.expect("plan"));
    const Token hash_token = line.peek();
    HP_TRY(const std::string hash, line.expect_string("a hash"));
    const std::string own = hash_plan(plan_);
    if (hash != own) {
      return line.locate(make_diag(DiagCode::V109, {{"found", hash}, {"plan", own}}), hash_token);
    }
    HP_REQUIRE_OK(line.expect("target"));
    HP_TRY(out_.target, line.expect_string("a target"));
    return Ok{};
  }

  Checked<Ok> parse_partials(Cursor& line) {
    do {
      HP_TRY(out_.partials16.emplace_back(), places_.parse_alloc(line, RankId()));
    } while (!line.at_end());
    return Ok{};
  }

  Checked<Ok> parse_box(Cursor& line) {
    HP_REQUIRE_OK(expect_id(line, "box", plan_.allocs.size() + out_.boxes.size()));
    HP_TRY(Alloc box, plan_text::parse_alloc(line, blocks_, plan_.program.name));
    places_.add_box(box);
    out_.boxes.push_back(std::move(box));
    return Ok{};
  }

  // The number of items that a signal of the kind can refer to.
  [[nodiscard]] std::size_t count_subjects(SignalKind kind) const {
    switch (kind) {
      case SignalKind::Sync:
        return plan_.syncs.size();
      case SignalKind::Barrier:
        return plan_.barriers.size();
      case SignalKind::Arrival:
      case SignalKind::Pulled:
        return groups_;
      case SignalKind::Credit:
      case SignalKind::RingSpace:
        return static_cast<std::size_t>(blocks_.ranks());
      case SignalKind::Arrived:
      case SignalKind::Taken:
        break;
    }
    return plan_.tasks.size();  // puts are numbered by task
  }

  Checked<Ok> parse_signal(Cursor& line) {
    HP_REQUIRE_OK(expect_id(line, "signal", out_.signals.size()));
    Signal signal;
    HP_TRY(signal.rank, parse_rank(line, blocks_));
    HP_TRY(signal.kind, plan_text::parse_word(line, "a kind of signal", SignalKind::RingSpace));
    HP_TRY(const std::int64_t index,
           parse_reference(line, print(signal.kind), count_subjects(signal.kind)));
    signal.index = static_cast<std::int32_t>(index);
    HP_REQUIRE_OK(parse_tasks(line, "from", signal.from));
    if (line.accept("arrivals")) {
      HP_TRY(signal.arrivals, parse_small(line, "arrivals"));
    }
    signal.is_posted = line.accept("posted");
    signal.is_in_data = line.accept("in");
    if (signal.is_in_data) HP_REQUIRE_OK(line.expect("data"));
    out_.signals.push_back(std::move(signal));
    return Ok{};
  }

  Checked<Ok> parse_launch(Cursor& line) {
    HP_REQUIRE_OK(expect_id(line, "launch", out_.launches.size()));
    Launch launch;
    HP_TRY(launch.rank, parse_rank(line, blocks_));
    HP_REQUIRE_OK(line.expect("queue"));
    HP_TRY(const std::int64_t queue, parse_reference(line, "queue", plan_.queues.size()));
    launch.queue = QueueId(queue);
    launch.lands = line.at("lands");
    HP_REQUIRE_OK(parse_tasks(line, launch.lands ? "lands" : "does", launch.does));
    launch.is_skipped = line.accept("skipped");
    // Launches that come first are issued first.
    const std::size_t launches = out_.launches.size();
    HP_REQUIRE_OK(parse_ids(line, "after", "launch", launches, launch.after));
    HP_REQUIRE_OK(parse_ids(line, "begun", "launch", launches, launch.begun));
    HP_REQUIRE_OK(parse_ids(line, "awaits", "signal", out_.signals.size(), launch.awaits));
    if (line.accept("begins")) {
      HP_REQUIRE_OK(line.expect("epoch"));
      launch.begins_epoch = true;
    }
    if (line.accept("bounds")) {
      HP_REQUIRE_OK(line.expect("epoch"));
      launch.bounds_epoch = true;
    }
    HP_REQUIRE_OK(parse_raises(line, "ready", launch.ready));
    HP_REQUIRE_OK(parse_optional_signal(line, "all_ready", launch.all_ready));
    HP_REQUIRE_OK(parse_raises(line, "pulled", launch.pulled));
    HP_REQUIRE_OK(parse_optional_signal(line, "all_pulled", launch.all_pulled));
    if (line.accept("reserved")) {
      HP_TRY(launch.reserved_sms, parse_small(line, "reserved SMs"));
    }
    HP_REQUIRE_OK(parse_raises(line, "raises", launch.raises));
    if (line.accept("by")) {
      HP_REQUIRE_OK(line.expect("engine"));
      launch.raised_by_engine = true;
    }
    out_.launches.push_back(std::move(launch));
    return Ok{};
  }

  Checked<Ok> parse_kernel(Cursor& line) {
    Kernel kernel;
    HP_TRY(kernel.name, plan_text::parse_name(line));
    if (line.at(TokenKind::String)) kernel.variant = line.take().text;
    HP_TRY(kernel.joins, parse_times(line, "joins"));
    HP_TRY(times_, parse_times(line, "times"));
    out_.launches.back().kernels.push_back(std::move(kernel));
    return Ok{};
  }

  // A repeat count; 1 without the word.
  static Checked<std::int32_t> parse_times(Cursor& line, std::string_view word) {
    if (!line.accept(word)) return 1;
    const Token token = line.peek();
    HP_TRY(const std::int32_t times, parse_small(line, word));
    if (times >= 1 && times <= kMostTimes) return times;
    return plan_text::out_of_range(line, token, word, times,
                                   "within 1.." + std::to_string(kMostTimes));
  }

  Checked<Ok> parse_arrival(Cursor& line) {
    HP_REQUIRE_OK(expect_id(line, "arrival", kernel().arrivals.size()));
    Arrival arrival;
    HP_REQUIRE_OK(parse_places(line, "reads", arrival.reads));
    HP_REQUIRE_OK(parse_optional_signal(line, "when", arrival.when));
    kernel().arrivals.push_back(std::move(arrival));
    return Ok{};
  }

  Checked<Ok> parse_panel(Cursor& line) {
    HP_REQUIRE_OK(expect_id(line, "panel", kernel().panels.size()));
    Panel panel;
    HP_REQUIRE_OK(parse_places(line, "reads", panel.reads));
    HP_REQUIRE_OK(line.expect("meets"));
    while (line.at(TokenKind::Integer)) {
      HP_TRY(const std::int64_t arrival,
             parse_reference(line, "arrival", kernel().arrivals.size()));
      panel.meets.push_back(static_cast<std::int32_t>(arrival));
    }
    HP_REQUIRE_OK(parse_places(line, "stores", panel.stores));
    if (panel.stores.empty() && line.accept("adds")) {
      HP_REQUIRE_OK(line.expect("to"));
      panel.adds = true;
      HP_REQUIRE_OK(places_.parse_places(line, rank(), panel.stores));
    }
    HP_TRY(panel.dtype, plan_text::parse_word(line, "a dtype", DType::Bool));
    if (line.accept("fused")) {
      SourcePosition where = lines_.position(line);
      HP_TRY(panel.fused_store, parse_small(line, "fused store"));
      fused_.emplace_back(*panel.fused_store, std::move(where));
    }
    kernel().panels.push_back(std::move(panel));
    return Ok{};
  }

  Checked<Ok> parse_addend(Cursor& line) {
    HP_REQUIRE_OK(line.expect("reads"));
    Addend addend;
    HP_TRY(addend.reads.emplace_back(), places_.parse_place(line, rank()));
    HP_REQUIRE_OK(places_.parse_places(line, rank(), addend.reads));
    HP_REQUIRE_OK(parse_optional_signal(line, "when", addend.when));
    kernel().panels.back().addends.push_back(std::move(addend));
    return Ok{};
  }

  Checked<Ok> parse_map(Cursor& line) {
    HP_TRY(plan_text::StatementName name, plan_text::parse_statement(line, plan_.program));
    Map map{.nest = std::move(name.nest), .stmt = name.stmt};
    HP_REQUIRE_OK(parse_places(line, "reads", map.reads));
    kernel().panels.back().maps.push_back(std::move(map));
    return Ok{};
  }

  Checked<Ok> parse_fused_store(Cursor& line) {
    HP_REQUIRE_OK(expect_id(line, "fused store", kernel().fused_stores.size()));
    HP_REQUIRE_OK(line.expect("raises"));
    HP_TRY(kernel().fused_stores.emplace_back(), parse_raise(line));
    return Ok{};
  }

  Checked<Ok> parse_fused_copy(Cursor& line) {
    FusedCopy copy;
    HP_REQUIRE_OK(line.expect("reads"));
    HP_TRY(copy.from, places_.parse_place(line, rank()));
    HP_REQUIRE_OK(line.expect("stores"));
    HP_TRY(copy.to, places_.parse_place(line, rank()));
    HP_REQUIRE_OK(parse_optional_signal(line, "raises", copy.raises));
    HP_REQUIRE_OK(line.expect("blocks"));
    const Token token = line.peek();
    HP_TRY(const std::int32_t blocks, parse_small(line, "blocks"));
    if (!kernel().fused_copies.empty() && blocks != kernel().copy_blocks) {
      return plan_text::out_of_range(line, token, "blocks", blocks,
                                     std::to_string(kernel().copy_blocks) + ", as above");
    }
    kernel().copy_blocks = blocks;
    kernel().fused_copies.push_back(std::move(copy));
    return Ok{};
  }

  // `6`, or `6+3`.
  Checked<Raise> parse_raise(Cursor& line) const {
    Raise raise;
    HP_TRY(const std::int64_t signal, parse_reference(line, "signal", out_.signals.size()));
    raise.signal = SignalId(signal);
    if (!line.accept("+")) return raise;
    HP_TRY(const std::int64_t adds,
           parse_count(line, "what is added", std::numeric_limits<std::uint32_t>::max()));
    raise.adds = static_cast<std::uint32_t>(adds);
    return raise;
  }

  Checked<Ok> parse_raises(Cursor& line, std::string_view keyword,
                           std::vector<Raise>& raises) const {
    if (!line.accept(keyword)) return Ok{};
    do {
      HP_TRY(raises.emplace_back(), parse_raise(line));
    } while (line.at(TokenKind::Integer));
    return Ok{};
  }

  template <class Value>
  static Checked<Ok> parse_ids(Cursor& line, std::string_view keyword, std::string_view what,
                               std::size_t count, std::vector<Value>& ids) {
    if (!line.accept(keyword)) return Ok{};
    do {
      HP_TRY(const std::int64_t id, parse_reference(line, what, count));
      ids.emplace_back(id);
    } while (line.at(TokenKind::Integer));
    return Ok{};
  }

  Checked<Ok> parse_tasks(Cursor& line, std::string_view keyword,
                          std::vector<TaskId>& tasks) const {
    return parse_ids(line, keyword, "task", plan_.tasks.size(), tasks);
  }

  Checked<Ok> parse_optional_signal(Cursor& line, std::string_view keyword,
                                    std::optional<SignalId>& signal) const {
    if (!line.accept(keyword)) return Ok{};
    HP_TRY(const std::int64_t value, parse_reference(line, "signal", out_.signals.size()));
    signal = SignalId(value);
    return Ok{};
  }

  // One or more places after the keyword.
  Checked<Ok> parse_places(Cursor& line, std::string_view keyword,
                           std::vector<Place>& places) const {
    if (!line.accept(keyword)) return Ok{};
    HP_TRY(places.emplace_back(), places_.parse_place(line, rank()));
    return places_.parse_places(line, rank(), places);
  }

  const Plan& plan_;
  const Blocks& blocks_;
  plan_text::TextLines& lines_;
  std::size_t groups_;
  PlaceParser places_;
  std::optional<LineKind> last_;
  // About the current kernel: how often it is repeated (0: no kernel), and the fused stores that
  // its panels name, with positions.
  std::int32_t times_ = 0;
  std::vector<std::pair<std::int32_t, SourcePosition>> fused_;
  std::optional<Diag> late_;  // found for an earlier line
  LaunchPlan out_;
};

}  // namespace

Checked<LaunchPlan> parse_launches(std::string_view text, const std::string& file, const Plan& plan,
                                   const Blocks& blocks) {
  plan_text::TextLines lines(text, 1, file);
  return LaunchParser(plan, blocks, lines).parse();
}

}  // namespace harpe::launch
