#include "compile/machines.h"

#include "compile/target.h"
#include "ir/dtype.h"
#include "leaves/leaf.h"
#include "machine/lines.h"
#include "support/check.h"
#include "support/whole_file.h"

namespace harpe {
namespace {

constexpr std::string_view kSuffix = ".machine";

// Prefix of the default machines, which grow in size.
constexpr std::string_view kDefaults = "h200x8";

Machine shipped(const MachinePreset& preset) {
  Checked<Machine> machine =
      parse_machine(preset.text, std::string(preset.name) + std::string(kSuffix));
  HP_CHECK(machine.ok(), "shipped machine does not parse: " + render(machine.error()));
  // A shipped machine counts as the source of all its lines, inherited ones included.
  for (const Line& line : lines_of(*machine)) line.from->of.clear();
  return std::move(machine).value();
}

Diag unknown_machine(const std::string& name) {
  std::vector<std::string> known;
  std::string words;
  for (const MachinePreset& preset : all_machine_presets()) {
    known.emplace_back(preset.name);
    words += (words.empty() ? "`" : ", `") + known.back() + "`";
  }
  return make_diag(DiagCode::U130, {{"name", name},
                                    {"hint", is_path(name) ? ": a file of one ends in `.machine`"
                                                           : suggestion(name, known)},
                                    {"known", words}});
}

Checked<Ok> check_leaf(const std::string& leaf, std::string_view subject) {
  if (leaf == "*" || find_leaf_contract(leaf) != nullptr) return Ok{};
  std::vector<std::string> known;
  for (const LeafContract& contract : all_leaf_contracts()) known.emplace_back(contract.name);
  return make_diag(DiagCode::M119, {{"line", std::string(subject) + " " + leaf},
                                    {"leaf", leaf},
                                    {"hint", suggestion(leaf, known)}});
}

Diag unused(const Machine& machine, const std::string& line, const std::string& reason) {
  return make_diag(DiagCode::M122,
                   {{"machine", machine.name}, {"what", "`" + line + "`"}, {"reason", reason}});
}

Checked<Ok> check_dtype(const Machine& machine, const std::string& dtype, const std::string& line) {
  if (dtype == "*" || parse_dtype(dtype)) return Ok{};
  return unused(machine, line, "`" + dtype + "` is no element type");
}

// Checks that the machine's lines are of leaves that some plan can have.
Checked<Ok> check_leaves(Machine machine) {
  for (LeafRate& rate : machine.rates) {
    HP_REQUIRE_OK(check_leaf(rate.leaf, "rate"));
    HP_REQUIRE_OK(check_dtype(machine, rate.dtype, line_of(rate).head));
  }
  for (LeafSample& sample : machine.samples) {
    HP_REQUIRE_OK(check_leaf(sample.leaf, "sample"));
    HP_REQUIRE_OK(check_dtype(machine, sample.dtype, line_of(sample).head));
    if (!sample.causal || find_leaf_contract(sample.leaf)->takes_masks) continue;
    return unused(machine, line_of(sample).head, "`" + sample.leaf + "` takes no mask");
  }
  return Ok{};
}

}  // namespace

Checked<Machine> load_machine(const std::string& name_or_file) {
  if (!name_or_file.ends_with(kSuffix)) {
    const MachinePreset* const preset = find_machine_preset(name_or_file);
    if (preset == nullptr) return unknown_machine(name_or_file);
    return shipped(*preset);
  }
  HP_TRY(const std::string text, read_whole(name_or_file));
  return parse_machine_file(text, name_or_file);
}

Checked<Machine> parse_machine_file(const std::string& text, const std::string& file) {
  HP_TRY(Machine machine, parse_machine(text, file));
  if (Checked<Ok> checked = check_leaves(machine); !checked.ok()) {
    return with_note(std::move(checked).error(), "in `" + file + "`");
  }
  return machine;
}

Checked<Machine> default_machine(const Mesh& mesh) {
  std::string largest;
  std::int64_t most = 0;
  for (const MachinePreset& preset : all_machine_presets()) {
    if (!preset.name.starts_with(kDefaults)) continue;
    Machine machine = shipped(preset);
    if (machine.processors() >= mesh.ranks()) return machine;
    if (machine.processors() > most) largest = preset.name;
    most = std::max(most, machine.processors());
  }
  return make_diag(DiagCode::U133, {{"ranks", mesh.ranks()}, {"name", largest}, {"most", most}});
}

Machine machine_of_hosts(std::int64_t hosts, std::int64_t ranks_each) {
  Machine machine = shipped(*find_machine_preset("cpu_hosts"));
  HP_CHECK(machine.levels.size() == 2, "hosts and a network");
  machine.levels[0].size = ranks_each;
  machine.levels[1].size = hosts;
  return machine;
}

std::vector<Machine> list_machines() {
  std::vector<Machine> machines;
  for (const MachinePreset& preset : all_machine_presets()) machines.push_back(shipped(preset));
  return machines;
}

std::string print_levels(const Machine& machine) {
  std::string out;
  for (const MachineLevel& level : machine.levels) {
    out += (out.empty() ? "" : " x ") + std::to_string(level.size) + " " + level.name;
  }
  return out.empty() ? "1" : out;
}

Checked<Machine> machine_for(const Request& request, const Mesh& mesh) {
  if (request.machine_text) return parse_machine_file(*request.machine_text, *request.machine);
  return machine_for(request.machine, mesh);
}

Checked<Machine> machine_for(const std::optional<std::string>& name, const Mesh& mesh) {
  return name ? load_machine(*name) : default_machine(mesh);
}

}  // namespace harpe
