#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compile/request.h"
#include "search/cache_folder.h"
#include "search/search.h"
#include "support/diag.h"

namespace harpe {

// What earlier searches know of a question.
struct CacheAnswer {
  std::optional<CacheEntry> exact;
  std::vector<Seed> seeds;  // its best; else those of the same question with other sizes
};
// Whether a normal form can be lowered. Errors: lower's.
using CheckForm = std::function<Checked<Ok>(const NormalForm& form)>;
// Entries that cannot be read or used are passed over with warnings (I410), so one where `check`
// refuses one of the schedules that are taken from it: the best predicted, and those that were
// measured.
[[nodiscard]] CacheAnswer consult_cache(const std::string& folder, const CacheKey& key,
                                        const CheckForm& check, const Warn& warn);

// The best of an entry for plans that run there: the one that was measured on these processors,
// else the best predicted, as where nothing runs.
[[nodiscard]] const CachedSchedule& answer_of(const CacheEntry& entry,
                                              const std::optional<Site>& site);

// What a search found, found today. Requires: it found something.
[[nodiscard]] CacheEntry make_cache_entry(CacheKey key, const SearchResult& found);
// One that was measured, unless the entry has one that was measured on such processors.
void add_measured(CacheEntry& entry, const CachedSchedule& schedule);

// All entries into one file, which the other reads back: all of them or, where one is no entry,
// none. Errors: list_cache's; I102; I101, I410, I411.
[[nodiscard]] Checked<CacheListing> export_cache(const std::string& folder,
                                                 const std::string& path);
[[nodiscard]] Checked<std::int64_t> import_cache(const std::string& folder,
                                                 const std::string& path);

// Errors: prune_cache's.
[[nodiscard]] Checked<Pruned> prune_cache(const std::string& folder, std::string_view version,
                                          const std::optional<std::int64_t>& days);

}  // namespace harpe
