#include "machine/uses.h"

#include <algorithm>
#include <map>
#include <utility>

#include "machine/lines.h"

namespace harpe {
namespace {

using Names = std::vector<std::string>;

Names quoted(Names names) {
  for (std::string& name : names) name = "`" + name + "`";
  return names;
}

std::string join(const Names& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out.empty() ? "none" : out;
}

class Uses {
 public:
  explicit Uses(const Machine& machine) : machine_(machine) {}

  [[nodiscard]] Checked<Ok> check() {
    for (MachineLevel& level : machine_.levels) HP_REQUIRE_OK(check_level(level));
    for (TransportRate& transport : machine_.transports) HP_REQUIRE_OK(check_transport(transport));
    for (CompletionSample& completion : machine_.completions) {
      HP_REQUIRE_OK(check_completion(completion));
    }
    for (CollectiveSample& collective : machine_.collectives) {
      if (collective.ranks >= 2) continue;
      return unused("`" + line_of(collective).name() + "`", "a collective has 2 ranks or more");
    }
    for (LeafSample& sample : machine_.samples) {
      if (sample.shape.flops > 0 || sample.shape.bytes > 0) continue;
      return unused("`" + line_of(sample).name() + "`", "it has neither `flops` nor `bytes`");
    }
    return Ok{};
  }

 private:
  [[nodiscard]] Diag unused(const std::string& what, const std::string& reason) const {
    return make_diag(DiagCode::M122,
                     {{"machine", machine_.name}, {"what", what}, {"reason", reason}});
  }

  [[nodiscard]] Names transports_at(const std::string& level) const {
    Names names;
    for (const TransportRate& one : machine_.transports) {
      if (one.level == level) names.push_back(one.via);
    }
    return names;
  }
  // True if the level has this transport for puts, by a proxy or by a kernel.
  [[nodiscard]] bool has(std::string_view via, const std::string& level) const {
    const Names names = transports_at(level);
    return std::ranges::find(names, via) != names.end();
  }

  // Refuses transports at a level of one group, which nothing crosses.
  [[nodiscard]] Checked<Ok> check_level(MachineLevel& level) {
    const Line line = line_of(level);
    const Names here = transports_at(level.name);
    if (level.size > 1 && here.empty()) {
      Names crossed;
      for (const MachineLevel& other : machine_.levels) {
        if (!transports_at(other.name).empty()) crossed.push_back(other.name);
      }
      return unused("`" + line.head + "`", "no transport crosses it; transports are at " +
                                               join(quoted(crossed)) +
                                               suggestion(level.name, crossed));
    }
    for (const Figure& figure : line.figures) {
      const Names wanted = needed_for(figure.name);
      const auto is_here = [&](const std::string& via) { return has(via, level.name); };
      if (wanted.empty() || value_of(figure) == 0 || std::ranges::any_of(wanted, is_here)) continue;
      return unused("`" + std::string(figure.name) + "` of `" + line.head + "`",
                    "it is of " + join(quoted(wanted)) + ", and transports at `" + level.name +
                        "` are " + join(quoted(here)));
    }
    return Ok{};
  }

  // The transports that a level's figure applies to; none: it applies to all.
  static Names needed_for(std::string_view figure) {
    if (figure.starts_with("proxy_")) return {"proxy"};
    if (figure.starts_with("nic_")) return {"proxy", "ibgda"};
    if (figure == "gpu_post") return {"ibgda"};
    return {};
  }

  [[nodiscard]] Checked<Ok> check_transport(TransportRate& transport) {
    const std::string line = line_of(transport).head;
    if (transport.unrounded != 0 && transport.via != "nccl") {
      return unused("`unrounded` of `" + line + "`", "it is of collectives, which `nccl` does");
    }
    if (transport.converting > 0 && transport.via != "nccl" && transport.via != "sm") {
      return unused("`converting` of `" + line + "`", "only `sm` and `nccl` convert");
    }
    return Ok{};
  }

  [[nodiscard]] Checked<Ok> check_completion(CompletionSample& completion) {
    const Line line = line_of(completion);
    if (!has("proxy", completion.level) && !has("ibgda", completion.level)) {
      return unused("`" + line.name() + "`", "only puts are drained, and transports at `" +
                                                 completion.level + "` are " +
                                                 join(quoted(transports_at(completion.level))));
    }
    const auto level = std::ranges::find(machine_.levels, completion.level, &MachineLevel::name);
    if (completion.nic_drain.value > 0 && level->nic_drain.value == 0) {
      return unused("`nic_drain` of `" + line.name() + "`",
                    "it is beyond that of the level, and `" + line_of(*level).head + "` has none");
    }
    return Ok{};
  }

  Machine machine_;  // not const, because lines are bound to fields that can be written
};

// Inherited lines by the machine that they are from, each kind once.
class Inherited {
 public:
  void add(const Provenance& from, const std::string& what) {
    if (from.of.empty()) return;
    Names& all = of_[from.of];
    if (std::ranges::find(all, what) == all.end()) all.push_back(what);
  }
  // Adds a level and its lines, as one item if all are from the same machine.
  void add(const MachineLevel& level, const std::vector<std::pair<Provenance, std::string>>& here) {
    const auto is_alike = [&](const auto& line) { return line.first.of == level.from.of; };
    if (std::ranges::all_of(here, is_alike)) return add(level.from, "all at " + level.name);
    add(level.from, "level " + level.name);
    for (const auto& [from, what] : here) add(from, what + " at " + level.name);
  }
  [[nodiscard]] std::string print() const {
    std::string out;
    for (const auto& [machine, all] : of_) {
      out += (out.empty() ? "" : "; ") + join(all) + " of " + machine;
    }
    return out;
  }

 private:
  std::map<std::string, Names> of_;
};

}  // namespace

Checked<Ok> check_uses(const Machine& machine) { return Uses(machine).check(); }

std::string list_inherited(const Machine& machine) {
  Inherited out;
  out.add(machine.processor.from, "processor " + machine.processor.name);
  for (const MachineLevel& level : machine.levels) {
    std::vector<std::pair<Provenance, std::string>> here;
    for (const TransportRate& one : machine.transports) {
      if (one.level == level.name) here.emplace_back(one.from, one.via);
    }
    for (const CompletionSample& one : machine.completions) {
      if (one.level == level.name) here.emplace_back(one.from, "completions");
    }
    for (const CollectiveSample& one : machine.collectives) {
      if (one.level == level.name) here.emplace_back(one.from, "collectives");
    }
    out.add(level, here);
  }
  for (const LeafRate& rate : machine.rates) out.add(rate.from, "rates");
  for (const LeafSample& sample : machine.samples) out.add(sample.from, "samples");
  return out.print();
}

}  // namespace harpe
