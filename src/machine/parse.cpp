#include <algorithm>
#include <array>
#include <set>

#include "machine/lines.h"

namespace harpe {
namespace {

constexpr std::array kOrigins = {Origin::Measured, Origin::Published, Origin::Assumed};
constexpr std::array kKinds = {LevelKind::Switch, LevelKind::Rail, LevelKind::Ring, LevelKind::Bus};
constexpr std::array kSuppliers = {Supplier::Own, Supplier::Library};
constexpr std::array kCollectives = {CollectiveKind::AllGather, CollectiveKind::ReduceScatter,
                                     CollectiveKind::AllReduce, CollectiveKind::AllToAll,
                                     CollectiveKind::SendRecv};

Diag unknown_word(const Cursor& cursor, std::string_view kind, const Token& word,
                  const std::vector<std::string>& known) {
  std::string words;
  for (const std::string& one : known) words += (words.empty() ? "`" : ", `") + one + "`";
  return cursor.locate(make_diag(DiagCode::T005, {{"kind", kind},
                                                  {"name", word.text},
                                                  {"hint", suggestion(word.text, known)},
                                                  {"words", words}}),
                       word);
}

template <class Word, std::size_t N>
Checked<Word> parse_word(Cursor& cursor, const std::array<Word, N>& words, std::string_view kind) {
  const Token token = cursor.peek();
  HP_TRY(const std::string text, cursor.expect_identifier(kind));
  std::vector<std::string> known;
  for (const Word word : words) {
    if (print(word) == text) return word;
    known.emplace_back(print(word));
  }
  return unknown_word(cursor, kind, token, known);
}

// A leaf or dtype; `*` means all.
Checked<std::string> parse_name_or_star(Cursor& cursor, std::string_view what) {
  if (cursor.accept("*")) return std::string("*");
  return cursor.expect_identifier(what);
}

Checked<std::string> parse_at(Cursor& cursor) {
  HP_REQUIRE_OK(cursor.expect("at"));
  return cursor.expect_identifier("a level's name");
}

// `by own`; without it the line is of any supplier.
Checked<Supplier> parse_supplier(Cursor& cursor) {
  if (!cursor.at("by") || cursor.peek(1).text == "=") return Supplier::Any;
  cursor.take();
  return parse_word(cursor, kSuppliers, "supplier");
}

Checked<Ok> parse_head(Cursor& cursor, Processor& processor) {
  HP_TRY(processor.name, cursor.expect_identifier("the processor's name"));
  return Ok{};
}

Checked<Ok> parse_head(Cursor& cursor, MachineLevel& level) {
  HP_TRY(level.name, cursor.expect_identifier("the level's name"));
  HP_TRY(level.kind, parse_word(cursor, kKinds, "kind of level"));
  return Ok{};
}

Checked<Ok> parse_head(Cursor& cursor, TransportRate& transport) {
  const Token word = cursor.peek();
  HP_TRY(transport.via, cursor.expect_identifier("a transport"));
  const auto names = all_transport_names();
  if (std::ranges::find(names, transport.via) == names.end()) {
    return unknown_word(cursor, "transport", word, {names.begin(), names.end()});
  }
  HP_TRY(transport.level, parse_at(cursor));
  return Ok{};
}

Checked<Ok> parse_head(Cursor& cursor, CompletionSample& completion) {
  HP_TRY(completion.level, parse_at(cursor));
  return Ok{};
}

Checked<Ok> parse_head(Cursor& cursor, CollectiveSample& collective) {
  HP_TRY(collective.kind, parse_word(cursor, kCollectives, "collective"));
  HP_TRY(collective.level, parse_at(cursor));
  HP_TRY(collective.by, parse_supplier(cursor));
  return Ok{};
}

Checked<Ok> parse_head(Cursor& cursor, LeafRate& rate) {
  HP_TRY(rate.leaf, parse_name_or_star(cursor, "a leaf or `*`"));
  HP_TRY(rate.dtype, parse_name_or_star(cursor, "an element type or `*`"));
  HP_TRY(rate.by, parse_supplier(cursor));
  return Ok{};
}

Checked<Ok> parse_head(Cursor& cursor, LeafSample& sample) {
  HP_TRY(sample.leaf, cursor.expect_identifier("a leaf"));
  HP_TRY(sample.dtype, cursor.expect_identifier("an element type"));
  if (cursor.at("causal") && cursor.peek(1).text != "=") sample.causal = cursor.accept("causal");
  HP_TRY(sample.by, parse_supplier(cursor));
  return Ok{};
}

Checked<Ok> parse_head(Cursor& cursor, PredictionError& error) {
  HP_TRY(error.family, cursor.expect_identifier("an operator"));
  return Ok{};
}

Checked<Provenance> parse_provenance(Cursor& cursor) {
  HP_REQUIRE_OK(cursor.expect("from"));
  Provenance from;
  HP_TRY(from.origin, parse_word(cursor, kOrigins, "origin"));
  HP_TRY(from.note, cursor.expect_string("a string that says from where"));
  if (cursor.accept("of")) {
    HP_TRY(from.of, cursor.expect_identifier("the machine whose line it is"));
  }
  return from;
}

template <class Item>
Checked<Item> parse_item(Cursor& cursor) {
  Item item;
  HP_REQUIRE_OK(parse_head(cursor, item));
  const Line line = line_of(item);
  HP_REQUIRE_OK(parse_figures(cursor, line.figures, line.head));
  HP_TRY(*line.from, parse_provenance(cursor));
  return item;
}

// The machine that is being read, with the lines that it inherits from the one it is like.
struct Draft {
  Machine machine;
  bool has_processor = false;
  std::set<std::string> inherited;  // names of lines
  std::set<std::string> written;    // names of its own lines
};

// Replaces an inherited line of the same name, or appends the line.
template <class Item>
Checked<Ok> add_item(Cursor& cursor, Draft& draft, std::vector<Item>& items) {
  const Token subject = cursor.take();
  HP_TRY(Item item, parse_item<Item>(cursor));
  const std::string name = line_of(item).name();
  if (!draft.written.insert(name).second) {
    return cursor.locate(
        make_diag(DiagCode::M112, {{"machine", draft.machine.name}, {"line", name}}), subject);
  }
  const auto is_same = [&](Item& other) { return line_of(other).name() == name; };
  const auto inherited =
      draft.inherited.contains(name) ? std::ranges::find_if(items, is_same) : items.end();
  if (inherited == items.end()) {
    items.push_back(std::move(item));
  } else {
    *inherited = std::move(item);
  }
  return Ok{};
}

Checked<Ok> parse_line(Cursor& cursor, Draft& draft) {
  Machine& machine = draft.machine;
  if (cursor.accept("about")) {
    HP_TRY(machine.summary, cursor.expect_string("a sentence, as a string"));
    return Ok{};
  }
  if (cursor.at("processor")) {
    std::vector<Processor> one;
    HP_REQUIRE_OK(add_item(cursor, draft, one));
    machine.processor = one.front();
    draft.has_processor = true;
    return Ok{};
  }
  if (cursor.at("level")) return add_item(cursor, draft, machine.levels);
  if (cursor.at("transport")) return add_item(cursor, draft, machine.transports);
  if (cursor.at("completion")) return add_item(cursor, draft, machine.completions);
  if (cursor.at("collective")) return add_item(cursor, draft, machine.collectives);
  if (cursor.at("rate")) return add_item(cursor, draft, machine.rates);
  if (cursor.at("sample")) return add_item(cursor, draft, machine.samples);
  if (cursor.at("error")) return add_item(cursor, draft, machine.errors);
  return cursor.unexpected(
      "`about`, `processor`, `level`, `transport`, `completion`, `collective`, `rate`, `sample`, "
      "`error` or `}`");
}

// `like NAME`: inherits everything of a shipped machine except its name, its summary and its
// prediction errors, which were measured on that machine only.
Checked<Ok> inherit(Cursor& cursor, Draft& draft) {
  const Token word = cursor.peek();
  HP_TRY(const std::string like, cursor.expect_identifier("a shipped machine's name"));
  const MachinePreset* const preset = find_machine_preset(like);
  if (preset == nullptr || like == draft.machine.name) {
    std::vector<std::string> known;
    std::string words;
    for (const MachinePreset& one : all_machine_presets()) {
      known.emplace_back(one.name);
      words += (words.empty() ? "`" : ", `") + known.back() + "`";
    }
    return cursor.locate(make_diag(DiagCode::M120, {{"machine", draft.machine.name},
                                                    {"like", like},
                                                    {"hint", suggestion(like, known)},
                                                    {"known", words}}),
                         word);
  }
  HP_TRY(Machine inherited, parse_machine(preset->text, like + ".machine"));
  inherited.name = draft.machine.name;
  for (const Line& line : lines_of(inherited)) {
    line.from->of = like;
    draft.inherited.insert(line.name());
  }
  inherited.summary.clear();
  inherited.errors.clear();
  draft.machine = std::move(inherited);
  draft.has_processor = true;
  return Ok{};
}

}  // namespace

Checked<Machine> parse_machine(std::string_view text, const std::string& file) {
  HP_TRY(Cursor cursor, Cursor::open(text, file));
  const Token keyword = cursor.peek();
  HP_REQUIRE_OK(cursor.expect("machine"));
  Draft draft;
  HP_TRY(draft.machine.name, cursor.expect_identifier("the machine's name"));
  if (cursor.accept("like")) HP_REQUIRE_OK(inherit(cursor, draft));
  HP_REQUIRE_OK(cursor.expect("{"));
  while (!cursor.accept("}")) HP_REQUIRE_OK(parse_line(cursor, draft));
  if (!cursor.at_end()) return cursor.unexpected("the end of the file after one machine");
  if (!draft.has_processor) {
    return cursor.locate(
        make_diag(DiagCode::M110, {{"machine", draft.machine.name}, {"line", "processor"}}),
        keyword);
  }
  if (Checked<Ok> checked = check_machine(draft.machine); !checked.ok()) {
    return cursor.locate(std::move(checked).error(), keyword);
  }
  return std::move(draft.machine);
}

}  // namespace harpe
