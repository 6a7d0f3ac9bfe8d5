#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "search/cache.h"
#include "support/diag.h"

namespace harpe {

// Cache entries in a folder, one file each, shared by any number of processes, also over NFS. There
// are no locks: a file appears whole, by rename, or not at all; of two writers the last one wins. A
// file that cannot be read is skipped, with a diagnostic to show as a warning. A missing folder
// counts as empty.

struct CacheFile {
  std::string path;
  CacheEntry entry;
  friend bool operator==(const CacheFile&, const CacheFile&) = default;
};

struct CacheListing {
  std::vector<CacheFile> files;   // in the order of their names, or as stated
  std::vector<Diag> passed_over;  // I101, I410 to I412, one per file
};

// Errors: I101 the folder cannot be read.
[[nodiscard]] Checked<CacheListing> list_cache(const std::string& folder);
// The entry of the key, if there is one. Reads no other file.
[[nodiscard]] CacheListing find_exact(const std::string& folder, const CacheKey& key);
// Entries of the same family with other sizes, nearest first, at most `most`: a search may begin
// with their schedules. Equally near ones are in the order of their names.
[[nodiscard]] CacheListing find_near(const std::string& folder, const CacheKey& key,
                                     std::size_t most = 8);

// Creates the folder if it is missing. Errors: I102.
[[nodiscard]] Checked<Ok> store(const std::string& folder, const CacheEntry& entry);

struct Pruned {
  std::int64_t unreadable = 0;  // damaged, misnamed, or in another version's format
  std::int64_t foreign = 0;     // of another version of Harpe, which this one never looks up
  std::int64_t old = 0;
  std::int64_t leftovers = 0;  // temporary files of dead writers, at least an hour old
  std::int64_t kept = 0;
  std::vector<Diag> passed_over = {};  // I102: non-empty folders in place of an entry
  friend bool operator==(const Pruned&, const Pruned&) = default;
};
// Removes entries that are useless for `version`, and those found before `oldest` ("2026-11-21").
// Errors: I101; I102 a file cannot be removed.
[[nodiscard]] Checked<Pruned> prune_cache(const std::string& folder, const std::string& version,
                                          const std::optional<std::string>& oldest,
                                          std::chrono::system_clock::time_point now);

// The best schedules of all entries in entry order, then the second ones, …; each form once.
[[nodiscard]] std::vector<Seed> seeds_of(const CacheListing& listing, std::size_t most = 8);

}  // namespace harpe
