#include "plan/launch_text.h"

#include <array>

#include "plan/text.h"
#include "plan/text_parts.h"

namespace harpe::launch {
namespace {

class LaunchPrinter {
 public:
  LaunchPrinter(const Plan& plan, const Blocks& blocks, const LaunchPlan& launches)
      : plan_(plan), blocks_(blocks), launches_(launches) {}

  std::string print() {
    out_ = "launches";
    add_number("version", kLaunchesVersion);
    out_ += " plan \"" + hash_plan(plan_) + "\" target \"" + launches_.target + "\"\n";
    if (!launches_.partials16.empty()) {
      out_ += "partials16";
      for (const AllocId id : launches_.partials16) out_ += ' ' + name_of(id, RankId());
      out_ += '\n';
    }
    for (std::size_t i = 0; i < launches_.boxes.size(); ++i) add_box(i);
    for (std::size_t i = 0; i < launches_.signals.size(); ++i) add_signal(i);
    for (std::size_t i = 0; i < launches_.launches.size(); ++i) add_launch(i);
    return std::move(out_);
  }

 private:
  [[nodiscard]] const Alloc& alloc_of(AllocId id) const {
    const std::size_t own = plan_.allocs.size();
    return id.index() < own ? plan_.allocs[id.index()] : launches_.boxes[id.index() - own];
  }

  // The allocation's name, with its rank if that is not `rank`.
  [[nodiscard]] std::string name_of(AllocId id, RankId rank) const {
    const Alloc& alloc = alloc_of(id);
    std::string name;
    plan_text::append_name(name, alloc.name);
    return name + (alloc.rank == rank ? "" : "@" + std::to_string(alloc.rank.value));
  }

  void add_number(std::string_view word, std::int64_t value) {
    out_ += ' ';
    out_ += word;
    out_ += ' ' + std::to_string(value);
  }

  template <class Ids>
  void add_ids(std::string_view word, const Ids& ids) {
    if (ids.empty()) return;
    out_ += ' ';
    out_ += word;
    for (const auto id : ids) out_ += ' ' + std::to_string(id.value);
  }

  void add_raises(std::string_view word, const std::vector<Raise>& raises) {
    if (raises.empty()) return;
    out_ += ' ';
    out_ += word;
    for (const Raise& raise : raises) {
      out_ += ' ' + std::to_string(raise.signal.value);
      if (raise.adds > 0) out_ += '+' + std::to_string(raise.adds);
    }
  }

  void add_box(std::size_t i) {
    out_ += "box " + std::to_string(plan_.allocs.size() + i) + ' ';
    plan_text::append_alloc(out_, launches_.boxes[i]);
    out_ += '\n';
  }

  void add_signal(std::size_t i) {
    const Signal& signal = launches_.signals[i];
    out_ += "signal " + std::to_string(i);
    add_number("rank", signal.rank.value);
    add_number(launch::print(signal.kind), signal.index);
    add_ids("from", signal.from);
    if (signal.arrivals != 1) add_number("arrivals", signal.arrivals);
    if (signal.is_posted) out_ += " posted";
    if (signal.is_in_data) out_ += " in data";
    out_ += '\n';
  }

  void add_launch(std::size_t i) {
    const Launch& launch = launches_.launches[i];
    rank_ = launch.rank;
    out_ += "launch " + std::to_string(i);
    add_number("rank", launch.rank.value);
    add_number("queue", launch.queue.value);
    add_ids(launch.lands ? "lands" : "does", launch.does);
    if (launch.is_skipped) out_ += " skipped";
    add_ids("after", launch.after);
    add_ids("begun", launch.begun);
    add_ids("awaits", launch.awaits);
    if (launch.begins_epoch) out_ += " begins epoch";
    if (launch.bounds_epoch) out_ += " bounds epoch";
    add_raises("ready", launch.ready);
    if (launch.all_ready) add_number("all_ready", launch.all_ready->value);
    add_raises("pulled", launch.pulled);
    if (launch.all_pulled) add_number("all_pulled", launch.all_pulled->value);
    if (launch.reserved_sms > 0) add_number("reserved", launch.reserved_sms);
    add_raises("raises", launch.raises);
    if (launch.raised_by_engine) out_ += " by engine";
    out_ += '\n';
    add_kernels(launch.kernels);
  }

  // Prints equal neighbouring kernels without panels as one line.
  void add_kernels(const std::vector<Kernel>& kernels) {
    for (std::size_t first = 0; first < kernels.size();) {
      std::size_t end = first + 1;
      const bool is_plain = kernels[first].panels.empty();
      while (is_plain && end < kernels.size() && kernels[end] == kernels[first]) ++end;
      out_ += "  kernel ";
      plan_text::append_name(out_, kernels[first].name);
      if (!kernels[first].variant.empty()) out_ += " \"" + kernels[first].variant + '"';
      if (kernels[first].joins != 1) add_number("joins", kernels[first].joins);
      if (end - first > 1) add_number("times", static_cast<std::int64_t>(end - first));
      out_ += '\n';
      add_parts(kernels[first]);
      first = end;
    }
  }

  void add_parts(const Kernel& kernel) {
    for (std::size_t i = 0; i < kernel.arrivals.size(); ++i) {
      out_ += "    arrival " + std::to_string(i);
      add_places(" reads", kernel.arrivals[i].reads);
      if (kernel.arrivals[i].when) add_number("when", kernel.arrivals[i].when->value);
      out_ += '\n';
    }
    for (std::size_t i = 0; i < kernel.panels.size(); ++i) add_panel(i, kernel.panels[i]);
    for (std::size_t i = 0; i < kernel.fused_stores.size(); ++i) {
      out_ += "    fused store " + std::to_string(i);
      add_raises("raises", {kernel.fused_stores[i]});
      out_ += '\n';
    }
    for (const FusedCopy& copy : kernel.fused_copies) {
      out_ += "    fused copy";
      add_places(" reads", {copy.from});
      add_places(" stores", {copy.to});
      if (copy.raises) add_number("raises", copy.raises->value);
      add_number("blocks", kernel.copy_blocks);
      out_ += '\n';
    }
  }

  void add_panel(std::size_t i, const Panel& panel) {
    out_ += "    panel " + std::to_string(i);
    add_places(" reads", panel.reads);
    out_ += " meets";
    for (const std::int32_t arrival : panel.meets) out_ += ' ' + std::to_string(arrival);
    if (panel.adds) out_ += " adds to";
    add_places(panel.adds ? "" : " stores", panel.stores);
    out_ += ' ' + std::string(harpe::print(panel.dtype));
    if (panel.fused_store) add_number("fused", *panel.fused_store);
    out_ += '\n';
    for (const Addend& addend : panel.addends) {
      out_ += "      addend";
      add_places(" reads", addend.reads);
      if (addend.when) add_number("when", addend.when->value);
      out_ += '\n';
    }
    for (const Map& map : panel.maps) {
      out_ += "      map " + map.nest + '.' + std::to_string(map.stmt);
      add_places(" reads", map.reads);
      out_ += '\n';
    }
  }

  void add_places(std::string_view word, const std::vector<Place>& places) {
    if (places.empty()) return;
    out_ += word;
    for (const Place& place : places) {
      out_ += ' ' + name_of(place.alloc, rank_) + '[';
      for (std::size_t axis = 0; axis < place.span.size(); ++axis) {
        if (axis > 0) out_ += ", ";
        const Interval& span = place.span[axis];
        out_ += span == Interval{0, length_of(place.alloc, axis)}
                    ? "*"
                    : std::to_string(span.begin) + ':' + std::to_string(span.end);
      }
      out_ += ']';
    }
  }

  // The whole length of an axis of a place.
  [[nodiscard]] std::int64_t length_of(AllocId id, std::size_t axis) const {
    const int buffer = blocks_.find_buffer(alloc_of(id).buffer);
    const BufferTable& table = blocks_.buffers()[static_cast<std::size_t>(buffer)];
    if (axis < table.axes.size()) {
      return blocks_.axes()[static_cast<std::size_t>(table.axes[axis])].size;
    }
    std::size_t opaque = axis - table.axes.size();
    for (const DimTable& dim : table.dims) {
      if (dim.axes.empty() && opaque-- == 0) return dim.opaque;
    }
    return 0;
  }

  const Plan& plan_;
  const Blocks& blocks_;
  const LaunchPlan& launches_;
  RankId rank_;  // of the current launch
  std::string out_;
};

}  // namespace

std::string print_launches(const Plan& plan, const Blocks& blocks, const LaunchPlan& launches) {
  return LaunchPrinter(plan, blocks, launches).print();
}

std::string_view print(SignalKind kind) {
  constexpr std::array<std::string_view, 8> kNames = {"sync",   "barrier", "arrival", "pulled",
                                                      "credit", "arrived", "taken",   "ring_space"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace harpe::launch
