#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "search/cache.h"
#include "support/diag.h"

namespace harpe {

// Entries in a folder, one file each, shared by any number of processes, also over NFS. Nothing is
// locked: a file appears whole, by rename, or not at all; of two writers the last one wins. What
// cannot be read is passed over, with a diagnostic to show as a warning, and never in the way.
// A folder that is not there is empty.

struct CacheFile {
  std::string path;
  CacheEntry entry;
  friend bool operator==(const CacheFile&, const CacheFile&) = default;
};

struct CacheListing {
  std::vector<CacheFile> files;   // in order of their names, or as said
  std::vector<Diag> passed_over;  // I101, I410 to I412, one per file
};

// Errors: I101 the folder cannot be read.
[[nodiscard]] Checked<CacheListing> list_cache(const std::string& folder);
// The entry of the key, if there is one. Looks at no other file.
[[nodiscard]] CacheListing find_exact(const std::string& folder, const CacheKey& key);
// Entries of the same family with other sizes, nearest first, `most` at most: their schedules are
// where a search may begin. Equally near ones in order of their names.
[[nodiscard]] CacheListing find_near(const std::string& folder, const CacheKey& key,
                                     std::size_t most = 8);

// Makes the folder where it is missing. Errors: I102.
[[nodiscard]] Checked<Ok> store(const std::string& folder, const CacheEntry& entry);

struct Pruned {
  std::int64_t unreadable = 0;  // damaged, misnamed, or of another version's form
  std::int64_t foreign = 0;     // of another version of Harpe: nothing asks for them here
  std::int64_t old = 0;
  std::int64_t leftovers = 0;  // of writers that died, an hour old or more
  std::int64_t kept = 0;
  std::vector<Diag> passed_over = {};  // I102: folders that hold something, in place of an entry
  friend bool operator==(const Pruned&, const Pruned&) = default;
};
// Removes what is of no use to `version`, and what was found before `oldest` ("2026-11-21").
// Errors: I101; I102 a file cannot be removed.
[[nodiscard]] Checked<Pruned> prune_cache(const std::string& folder, const std::string& version,
                                          const std::optional<std::string>& oldest,
                                          std::chrono::system_clock::time_point now);

// The best schedules of all entries in their order, then the second ones, …; each form once.
[[nodiscard]] std::vector<Seed> seeds_of(const CacheListing& listing, std::size_t most = 8);

}  // namespace harpe
