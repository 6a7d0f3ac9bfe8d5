#include "machine/machine.h"

#include <algorithm>
#include <array>
#include <set>

#include "machine/lines.h"
#include "machine/mesh.h"
#include "machine/texts.h"
#include "machine/uses.h"
#include "support/hash.h"

namespace harpe {
namespace {

constexpr MachinePreset make(std::string_view name, std::string_view text) {
  return {.name = name, .text = text};
}

// Default machines are tried in this order: docs/machine.md.
constexpr std::array kPresets = {
    make("h200x8", machine_text::h200x8),
    make("h200x8x2", machine_text::h200x8x2),
    make("h200x8x4", machine_text::h200x8x4),
    make("h200x8x8", machine_text::h200x8x8),
    make("h200x8x16", machine_text::h200x8x16),
    make("h200x8x32", machine_text::h200x8x32),
    make("h200x8x64", machine_text::h200x8x64),
    make("h200x8x128", machine_text::h200x8x128),
    make("h200x8x16x8", machine_text::h200x8x16x8),
    make("h100x8", machine_text::h100x8),
    make("slingshot_a100x4x16", machine_text::slingshot_a100x4x16),
    make("connectx7_h100x8x16", machine_text::connectx7_h100x8x16),
    make("efa_h200x8x16", machine_text::efa_h200x8x16),
    make("l4x8", machine_text::l4x8),
    make("cpu", machine_text::cpu),
    make("cpu_hosts", machine_text::cpu_hosts),
};

bool is_word(std::string_view text) {
  const Checked<Cursor> cursor = Cursor::open(text);
  return cursor.ok() && cursor->peek().kind == TokenKind::Identifier &&
         cursor->peek().text.size() == text.size();
}

Checked<Ok> check_word(const std::string& word, std::string_view figure, const std::string& line,
                       bool star = false) {
  if (is_word(word) || (star && word == "*")) return Ok{};
  return make_diag(DiagCode::M113, {{"line", line},
                                    {"figure", figure},
                                    {"value", "`" + word + "`"},
                                    {"wanted", star ? "a word or `*`" : "a word"}});
}

Checked<Ok> check_quotable(const std::string& text, std::string_view figure,
                           const std::string& line) {
  if (text.find_first_of("\"\n") == std::string::npos) return Ok{};
  return make_diag(DiagCode::M113, {{"line", line},
                                    {"figure", figure},
                                    {"value", text},
                                    {"wanted", "one line without a quote"}});
}

Checked<Ok> check_line(const Line& line) {
  for (const Figure& figure : line.figures) HP_REQUIRE_OK(check_range(figure, line.head));
  return check_quotable(line.from->note, "from", line.head);
}

Checked<Ok> check_at(const Machine& machine, const std::string& level, const std::string& line) {
  std::vector<std::string> known;
  for (const MachineLevel& candidate : machine.levels) known.push_back(candidate.name);
  if (std::ranges::find(known, level) != known.end()) return Ok{};
  return make_diag(DiagCode::M114, {{"line", line},
                                    {"level", level},
                                    {"machine", machine.name},
                                    {"hint", suggestion(level, known)}});
}

// Checks every word and the places of lines. Lines refer to `machine`.
Checked<Ok> check_words(Machine& machine) {
  const std::string title = "machine " + machine.name;
  HP_REQUIRE_OK(check_word(machine.name, "name", title));
  HP_REQUIRE_OK(check_quotable(machine.summary, "about", title));
  HP_REQUIRE_OK(check_word(machine.processor.name, "name", line_of(machine.processor).head));
  for (MachineLevel& level : machine.levels) {
    HP_REQUIRE_OK(check_word(level.name, "name", line_of(level).head));
  }
  for (TransportRate& transport : machine.transports) {
    const std::string line = line_of(transport).head;
    const auto known = all_transport_names();
    if (std::ranges::find(known, transport.via) == known.end()) {
      return make_diag(DiagCode::M113, {{"line", line},
                                        {"figure", "via"},
                                        {"value", "`" + transport.via + "`"},
                                        {"wanted", "a transport"}});
    }
    HP_REQUIRE_OK(check_at(machine, transport.level, line));
  }
  for (CompletionSample& completion : machine.completions) {
    HP_REQUIRE_OK(check_at(machine, completion.level, line_of(completion).head));
  }
  for (CollectiveSample& collective : machine.collectives) {
    HP_REQUIRE_OK(check_at(machine, collective.level, line_of(collective).head));
  }
  for (LeafRate& rate : machine.rates) {
    HP_REQUIRE_OK(check_word(rate.leaf, "leaf", line_of(rate).head, true));
    HP_REQUIRE_OK(check_word(rate.dtype, "dtype", line_of(rate).head, true));
  }
  for (LeafSample& sample : machine.samples) {
    HP_REQUIRE_OK(check_word(sample.leaf, "leaf", line_of(sample).head));
    HP_REQUIRE_OK(check_word(sample.dtype, "dtype", line_of(sample).head));
  }
  for (PredictionError& error : machine.errors) {
    HP_REQUIRE_OK(check_word(error.family, "operator", line_of(error).head));
  }
  return Ok{};
}

Checked<Ok> check_alike(const Machine& machine, const std::vector<Line>& lines) {
  std::set<std::string> names;
  for (const Line& line : lines) {
    if (names.insert(line.name()).second) continue;
    return make_diag(DiagCode::M112, {{"machine", machine.name}, {"line", line.name()}});
  }
  std::set<std::string> levels;
  for (const MachineLevel& level : machine.levels) {
    if (levels.insert(level.name).second) continue;
    return make_diag(DiagCode::M112, {{"machine", machine.name}, {"line", "level " + level.name}});
  }
  return Ok{};
}

Checked<Ok> check_size(const Machine& machine) {
  std::int64_t count = 1;
  for (const MachineLevel& level : machine.levels) {
    if (level.size <= kMaxRanks) count *= level.size;
    if (level.size <= kMaxRanks && count <= kMaxRanks) continue;
    return make_diag(
        DiagCode::M115,
        {{"machine", machine.name}, {"count", std::max(count, level.size)}, {"limit", kMaxRanks}});
  }
  return Ok{};
}

std::string print_lines(const std::vector<Line>& lines, bool provenance) {
  std::string out;
  for (const Line& line : lines) {
    out += "  " + line.head + print(line.figures);
    if (provenance) {
      out += " from " + std::string(print(line.from->origin)) + " \"" + line.from->note + "\"";
      if (!line.from->of.empty()) out += " of " + line.from->of;
    }
    out += "\n";
  }
  return out;
}

}  // namespace

std::int64_t Machine::processors() const {
  std::int64_t count = 1;
  for (const MachineLevel& level : levels) count *= level.size;
  return count;
}

std::string_view print(Origin origin) {
  switch (origin) {
    case Origin::Measured:
      return "measured";
    case Origin::Published:
      return "published";
    case Origin::Assumed:
      return "assumed";
  }
  return "";
}

std::string_view print(LevelKind kind) {
  switch (kind) {
    case LevelKind::Switch:
      return "switch";
    case LevelKind::Rail:
      return "rail";
    case LevelKind::Ring:
      return "ring";
    case LevelKind::Bus:
      return "bus";
  }
  return "";
}

std::string_view print(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::AllGather:
      return "all_gather";
    case CollectiveKind::ReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::AllReduce:
      return "all_reduce";
    case CollectiveKind::AllToAll:
      return "all_to_all";
    case CollectiveKind::SendRecv:
      return "send_recv";
  }
  return "";
}

std::string_view print(Supplier by) {
  switch (by) {
    case Supplier::Any:
      return "any";
    case Supplier::Own:
      return "own";
    case Supplier::Library:
      return "library";
  }
  return "";
}

std::string print(const Machine& machine) {
  Machine copy = machine;
  std::string out = "machine " + machine.name + " {\n";
  if (!machine.summary.empty()) out += "  about \"" + machine.summary + "\"\n";
  return out + print_lines(lines_of(copy), true) + "}\n";
}

Checked<Ok> check_machine(const Machine& machine) {
  Machine copy = machine;
  HP_REQUIRE_OK(check_words(copy));
  const std::vector<Line> lines = lines_of(copy);
  for (const Line& line : lines) HP_REQUIRE_OK(check_line(line));
  HP_REQUIRE_OK(check_alike(machine, lines));
  HP_REQUIRE_OK(check_size(machine));
  const auto stands_in = [](const LeafRate& rate) {
    return rate.leaf == "*" && rate.dtype == "*" && rate.by == Supplier::Any;
  };
  if (!std::ranges::any_of(machine.rates, stands_in)) {
    return make_diag(DiagCode::M110, {{"machine", machine.name}, {"line", "rate * *"}});
  }
  return check_uses(machine);
}

const PredictionError* find_error(const Machine& machine, std::string_view family) {
  const auto found = std::ranges::find(machine.errors, family, &PredictionError::family);
  return found == machine.errors.end() ? nullptr : &*found;
}

std::string fingerprint(const Machine& machine) {
  Machine copy = machine;
  copy.errors.clear();
  return hash_text("machine " + machine.name + " {\n" + print_lines(lines_of(copy), false) + "}\n");
}

std::span<const MachinePreset> all_machine_presets() { return kPresets; }

const MachinePreset* find_machine_preset(std::string_view name) {
  const auto found = std::ranges::find(kPresets, name, &MachinePreset::name);
  return found == kPresets.end() ? nullptr : &*found;
}

}  // namespace harpe
