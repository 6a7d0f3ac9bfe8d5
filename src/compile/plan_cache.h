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

// What the cache holds for a question.
struct CacheAnswer {
  std::optional<CacheEntry> exact;
  std::vector<Seed> seeds;  // its best; else those of the same question with other sizes
};
// Checks that a normal form can be lowered. Errors: lower's.
using CheckForm = std::function<Checked<Ok>(const NormalForm& form)>;
// Entries that cannot be read or used are skipped with warnings (I410). So are entries in which
// `check` refuses the best predicted schedule or a measured one.
[[nodiscard]] CacheAnswer consult_cache(const std::string& folder, const CacheKey& key,
                                        const CheckForm& check, const Warn& warn);

// The best schedule of an entry for plans that run on `site`: the one measured on these processors;
// else, or without a site, the best predicted.
[[nodiscard]] const CachedSchedule& answer_of(const CacheEntry& entry,
                                              const std::optional<Site>& site);

// The entry of a search's result, with today's date. Requires: the search found something.
[[nodiscard]] CacheEntry make_cache_entry(CacheKey key, const SearchResult& found);
// Adds a measured schedule, unless the entry has one that was measured on such processors.
void add_measured(CacheEntry& entry, const CachedSchedule& schedule);

// Exports all entries to one file, and imports such a file: all of its entries or, if one of them
// is invalid, none. Errors: list_cache's; I102; I101, I410, I411.
[[nodiscard]] Checked<CacheListing> export_cache(const std::string& folder,
                                                 const std::string& path);
[[nodiscard]] Checked<std::int64_t> import_cache(const std::string& folder,
                                                 const std::string& path);

// Errors: prune_cache's.
[[nodiscard]] Checked<Pruned> prune_cache(const std::string& folder, std::string_view version,
                                          const std::optional<std::int64_t>& days);

}  // namespace harpe
