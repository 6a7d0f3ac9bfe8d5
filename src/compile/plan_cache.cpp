#include "compile/plan_cache.h"

#include <algorithm>
#include <chrono>

#include "io/files.h"
#include "support/date.h"
#include "support/whole_file.h"

namespace harpe {
namespace {

// The hash of an entry proves that it is complete, but not that its schedules fit the program.
Checked<Ok> check_entry(const CacheFile& file, const CheckForm& check) {
  const std::vector<CachedSchedule>& schedules = file.entry.schedules;
  for (const CachedSchedule& schedule : schedules) {
    if (&schedule != &schedules.front() && !schedule.measured) continue;
    const Checked<Ok> checked = check(schedule.form);
    if (checked.ok()) continue;
    return make_diag(DiagCode::I410, {{"path", file.path},
                                      {"reason", "its schedule `" + schedule.label +
                                                     "`: " + render_message(checked.error())}});
  }
  return Ok{};
}

}  // namespace

CacheAnswer consult_cache(const std::string& folder, const CacheKey& key, const CheckForm& check,
                          const Warn& warn) {
  CacheAnswer answer;
  CacheListing known = find_exact(folder, key);
  for (const Diag& diag : known.passed_over) warn(diag);
  if (!known.files.empty()) {
    const Checked<Ok> checked = check_entry(known.files.front(), check);
    if (checked.ok()) {
      answer.exact = std::move(known.files.front().entry);
      const CachedSchedule& best = answer.exact->schedules.front();
      answer.seeds = {{best.label, best.form}};
      return answer;
    }
    warn(checked.error());
  }
  known = find_near(folder, key);
  answer.seeds = seeds_of(known);
  for (const Diag& diag : known.passed_over) warn(diag);
  return answer;
}

const CachedSchedule& answer_of(const CacheEntry& entry, const std::optional<Site>& site) {
  for (const CachedSchedule& schedule : entry.schedules) {
    if (!site || !schedule.measured || schedule.measured->backend != print(site->backend)) continue;
    if (schedule.measured->processor == site->processor) return schedule;
  }
  return entry.schedules.front();
}

CacheEntry make_cache_entry(CacheKey key, const SearchResult& found) {
  CacheEntry entry{.key = std::move(key), .date = today(), .schedules = {}};
  for (std::size_t i = 0; i < std::min(found.top.size(), kMostCached); ++i) {
    const Evaluated& evaluated = found.top[i];
    entry.schedules.push_back({.label = evaluated.label,
                               .predicted = evaluated.time(),
                               .measured = std::nullopt,
                               .memory_bytes = evaluated.memory_bytes,
                               .form = evaluated.form});
  }
  return entry;
}

void add_measured(CacheEntry& entry, const CachedSchedule& schedule) {
  const auto is_of_same = [&](const CachedSchedule& other) {
    return other.measured && other.measured->backend == schedule.measured->backend &&
           other.measured->processor == schedule.measured->processor;
  };
  if (std::ranges::any_of(entry.schedules, is_of_same)) return;
  const auto same = std::ranges::find_if(entry.schedules, [&](const CachedSchedule& other) {
    return !other.measured && other.form == schedule.form;
  });
  if (same == entry.schedules.end()) {
    entry.schedules.push_back(schedule);
  } else {
    same->measured = schedule.measured;
  }
}

Checked<CacheListing> export_cache(const std::string& folder, const std::string& path) {
  HP_TRY(CacheListing listing, list_cache(folder));
  std::string text;
  for (const CacheFile& file : listing.files) text += print(file.entry);
  HP_REQUIRE_OK(write_text(path, text));
  return listing;
}

Checked<std::int64_t> import_cache(const std::string& folder, const std::string& path) {
  HP_TRY(const std::string text, read_whole(path));
  std::vector<CacheEntry> entries;
  for (const std::string_view part : split_cache_entries(text)) {
    Checked<CacheEntry> entry = parse_cache_entry(part, path);
    if (!entry.ok()) {
      return with_note(entry.error(), "in entry " + std::to_string(entries.size() + 1) +
                                          " of the file; nothing is imported");
    }
    entries.push_back(*std::move(entry));
  }
  for (const CacheEntry& entry : entries) HP_REQUIRE_OK(store(folder, entry));
  return std::ssize(entries);
}

Checked<Pruned> prune_cache(const std::string& folder, std::string_view version,
                            const std::optional<std::int64_t>& days) {
  std::optional<std::string> oldest;
  if (days) oldest = date_before(*days);
  return prune_cache(folder, std::string(version), oldest, std::chrono::system_clock::now());
}

}  // namespace harpe
