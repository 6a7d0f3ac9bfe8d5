#include <algorithm>

#include "ir/text.h"
#include "search/cache.h"
#include "support/hash.h"
#include "support/lexer.h"

namespace harpe {
namespace {

constexpr std::string_view kOpen = "cache version ";

// Strings of the text form have no escapes.
std::string quote(std::string text) {
  std::ranges::replace(text, '"', '\'');
  std::ranges::replace(text, '\n', ' ');
  return '"' + text + '"';
}

std::string print_key(const CacheKey& key) {
  std::string sizes;
  for (const auto& [axis, size] : key.sizes) {
    sizes += (sizes.empty() ? " " : ", ") + axis + " = " + std::to_string(size);
  }
  std::string out = "  program " + quote(key.program_hash) + "\n";
  if (!sizes.empty()) out += "  sizes" + sizes + "\n";
  out += "  dtype " + quote(key.dtype) + "\n  contract " + std::string(print(key.contract)) +
         "\n  numerics " + std::string(print(key.numerics)) + "\n  mesh " + quote(key.mesh) +
         "\n  machine " + quote(key.machine) + " " + quote(key.machine_hash) + "\n";
  if (key.memory_limit) out += "  memory_limit " + std::to_string(*key.memory_limit) + "\n";
  if (key.cuts) out += "  cuts " + std::to_string(*key.cuts) + "\n";
  if (!key.fixed.empty()) out += "  fixed " + quote(key.fixed) + "\n";
  if (key.layout) out += "  layout " + std::string(print(*key.layout)) + "\n";
  return out + "  harpe " + quote(key.version) + "\n";
}

std::string print_schedule(const CachedSchedule& schedule) {
  std::string out = "schedule " + quote(schedule.label) + " {\n  predicted_ps " +
                    std::to_string(schedule.predicted.value) + "\n";
  if (schedule.measured) {
    const CachedTime& measured = *schedule.measured;
    out += "  measured_ps " + std::to_string(measured.time.value) + " on " +
           quote(measured.backend) + " " + quote(measured.processor) + "\n";
    if (measured.baseline) {
      out += "  baseline_ps " + std::to_string(measured.baseline->time.value) + " of " +
             quote(measured.baseline->name) + "\n";
    }
  }
  return out + "  memory_bytes " + std::to_string(schedule.memory_bytes) + "\n}\n" +
         print(schedule.form);
}

template <class Enum>
Checked<Enum> parse_word(Cursor& cursor, std::initializer_list<Enum> all, std::string_view what) {
  for (const Enum value : all) {
    if (cursor.accept(print(value))) return value;
  }
  return cursor.unexpected(what);
}

Checked<std::vector<std::pair<std::string, std::int64_t>>> parse_sizes(Cursor& cursor) {
  std::vector<std::pair<std::string, std::int64_t>> sizes;
  if (!cursor.accept("sizes")) return sizes;
  do {
    HP_TRY(const std::string axis, cursor.expect_identifier("an axis"));
    HP_REQUIRE_OK(cursor.expect("="));
    HP_TRY(const std::int64_t size, cursor.expect_integer("a size"));
    sizes.emplace_back(axis, size);
  } while (cursor.accept(","));
  return sizes;
}

Checked<std::string> parse_quoted(Cursor& cursor, std::string_view name) {
  HP_REQUIRE_OK(cursor.expect(name));
  return cursor.expect_string("a text in quotes");
}

Checked<CacheKey> parse_key(Cursor& cursor) {
  CacheKey key;
  HP_REQUIRE_OK(cursor.expect("entry"));
  HP_TRY(key.program, cursor.expect_identifier("a program"));
  HP_REQUIRE_OK(cursor.expect("{"));
  HP_TRY(key.program_hash, parse_quoted(cursor, "program"));
  HP_TRY(key.sizes, parse_sizes(cursor));
  HP_TRY(key.dtype, parse_quoted(cursor, "dtype"));
  HP_REQUIRE_OK(cursor.expect("contract"));
  HP_TRY(key.contract, parse_word(cursor, {Contract::Standard, Contract::Free}, "a contract"));
  HP_REQUIRE_OK(cursor.expect("numerics"));
  HP_TRY(key.numerics,
         parse_word(cursor,
                    {NumericsClass::Exact, NumericsClass::Reassociated, NumericsClass::Rounded},
                    "a class of numerics"));
  HP_TRY(key.mesh, parse_quoted(cursor, "mesh"));
  HP_TRY(key.machine, parse_quoted(cursor, "machine"));
  HP_TRY(key.machine_hash, cursor.expect_string("the machine's hash"));
  if (cursor.accept("memory_limit")) {
    HP_TRY(key.memory_limit, cursor.expect_integer("bytes"));
  }
  if (cursor.accept("cuts")) {
    HP_TRY(const std::int64_t cuts, cursor.expect_integer("how often the mesh is cut"));
    key.cuts = static_cast<int>(cuts);
  }
  if (cursor.at("fixed")) {
    HP_TRY(key.fixed, parse_quoted(cursor, "fixed"));
  }
  if (cursor.accept("layout")) {
    HP_TRY(key.layout,
           parse_word(cursor, {AxisLayout::Contiguous, AxisLayout::Zigzag}, "a layout"));
  }
  HP_TRY(key.version, parse_quoted(cursor, "harpe"));
  return key;
}

// "2026-11-21"
Checked<std::string> parse_date(Cursor& cursor) {
  HP_REQUIRE_OK(cursor.expect("found"));
  const Diag wrong = cursor.unexpected("a date in quotes, as in \"2026-11-21\"");
  HP_TRY(std::string date, cursor.expect_string("a date"));
  bool fits = date.size() == 10;
  for (std::size_t i = 0; fits && i < date.size(); ++i) {
    fits = i == 4 || i == 7 ? date[i] == '-' : date[i] >= '0' && date[i] <= '9';
  }
  if (!fits) return wrong;
  return date;
}

Checked<CachedTime> parse_measured(Cursor& cursor) {
  CachedTime measured;
  HP_TRY(measured.time.value, cursor.expect_integer("picoseconds"));
  HP_TRY(measured.backend, parse_quoted(cursor, "on"));
  HP_TRY(measured.processor, cursor.expect_string("a processor"));
  if (cursor.accept("baseline_ps")) {
    CachedBaseline baseline;
    HP_TRY(baseline.time.value, cursor.expect_integer("picoseconds"));
    HP_TRY(baseline.name, parse_quoted(cursor, "of"));
    measured.baseline = std::move(baseline);
  }
  return measured;
}

Checked<CachedSchedule> parse_schedule(Cursor& cursor) {
  CachedSchedule schedule;
  HP_TRY(schedule.label, parse_quoted(cursor, "schedule"));
  HP_REQUIRE_OK(cursor.expect("{"));
  HP_REQUIRE_OK(cursor.expect("predicted_ps"));
  HP_TRY(schedule.predicted.value, cursor.expect_integer("picoseconds"));
  if (cursor.accept("measured_ps")) {
    HP_TRY(schedule.measured, parse_measured(cursor));
  }
  HP_REQUIRE_OK(cursor.expect("memory_bytes"));
  HP_TRY(schedule.memory_bytes, cursor.expect_integer("bytes"));
  HP_REQUIRE_OK(cursor.expect("}"));
  HP_TRY(schedule.form, parse_form(cursor));
  return schedule;
}

Checked<CacheEntry> parse_body(std::string_view body) {
  HP_TRY(Cursor cursor, Cursor::open(body));
  CacheEntry entry;
  HP_TRY(entry.key, parse_key(cursor));
  HP_TRY(entry.date, parse_date(cursor));
  HP_REQUIRE_OK(cursor.expect("}"));
  do {
    HP_TRY(CachedSchedule schedule, parse_schedule(cursor));
    entry.schedules.push_back(std::move(schedule));
  } while (!cursor.at_end());
  return entry;
}

Diag no_entry(const std::string& file, const std::string& reason) {
  return make_diag(DiagCode::I410, {{"path", file}, {"reason", reason}});
}

// The first line: version and hash.
struct Head {
  std::int64_t version = 0;
  std::string hash;
};
Checked<Head> parse_head(std::string_view line) {
  HP_TRY(Cursor cursor, Cursor::open(line));
  Head head;
  HP_REQUIRE_OK(cursor.expect("cache"));
  HP_REQUIRE_OK(cursor.expect("version"));
  HP_TRY(head.version, cursor.expect_integer("a version"));
  if (head.version != kCacheVersion) return head;
  HP_REQUIRE_OK(cursor.expect("hash"));
  HP_TRY(head.hash, cursor.expect_string("a hash"));
  return head;
}

}  // namespace

std::string print(const CacheEntry& entry) {
  std::string body = "entry " + entry.key.program + " {\n" + print_key(entry.key) + "  found " +
                     quote(entry.date) + "\n}\n";
  for (const CachedSchedule& schedule : entry.schedules) body += print_schedule(schedule);
  return std::string(kOpen) + std::to_string(kCacheVersion) + " hash " + quote(hash_text(body)) +
         "\n" + body;
}

Checked<CacheEntry> parse_cache_entry(std::string_view text, const std::string& file) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const Checked<Head> head = parse_head(text.substr(0, end));
  if (!head.ok()) return no_entry(file, "it does not begin with `cache version`");
  if (head->version != kCacheVersion) {
    return make_diag(DiagCode::I411,
                     {{"path", file}, {"found", head->version}, {"own", kCacheVersion}});
  }
  const std::string_view body = text.substr(std::min(end + 1, text.size()));
  if (hash_text(body) != head->hash) return no_entry(file, "its hash differs from its text's");
  Checked<CacheEntry> entry = parse_body(body);
  if (entry.ok()) return entry;
  const Diag& diag = entry.error();
  const std::int64_t line = diag.where ? diag.where->line + 1 : 0;
  return no_entry(file, "line " + std::to_string(line) + ": " + render_message(diag));
}

std::vector<std::string_view> split_cache_entries(std::string_view text) {
  std::vector<std::string_view> entries;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t next = text.find("\n" + std::string(kOpen), begin);
    const std::size_t end = next == std::string_view::npos ? text.size() : next + 1;
    entries.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return entries;
}

}  // namespace harpe
