#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/form.h"
#include "ir/program.h"
#include "machine/machine.h"
#include "machine/mesh.h"
#include "search/search.h"
#include "support/diag.h"
#include "support/units.h"

namespace harpe {

// What a search found, kept for the next one (docs/cache.md, commir.md 11.5): one text per question
// that was asked.

constexpr std::int64_t kCacheVersion = 3;  // of the form of entries
constexpr std::size_t kMostCached = 8;     // schedules of an entry, but those that were measured

// The question: equal keys have equal answers.
struct CacheKey {
  std::string program;       // its name
  std::string program_hash;  // of its canonical text without the sizes of its axes
  std::vector<std::pair<std::string, std::int64_t>> sizes;  // of its axes, as declared
  std::string dtype;                                        // of its first input
  Contract contract = Contract::Standard;
  NumericsClass numerics = NumericsClass::Rounded;
  std::string mesh;  // "cp=8"
  std::string machine;
  std::string machine_hash;                  // fingerprint
  std::optional<std::int64_t> memory_limit;  // where the caller set one
  std::optional<int> cuts;                   // of the mesh, where the caller said so
  std::string fixed;                         // homes that stay as given: "place q[q0@cp]; …"
  std::optional<AxisLayout> layout;          // of positions, where the caller fixes one
  std::string version;                       // of Harpe
  friend bool operator==(const CacheKey&, const CacheKey&) = default;
};

// Requires: a ground program.
[[nodiscard]] CacheKey make_cache_key(const Program& program, const Mesh& mesh,
                                      const Machine& machine, const SearchOptions& options,
                                      std::string_view version);

// Equal for keys that differ in sizes alone.
[[nodiscard]] std::string family_hash(const CacheKey& key);
[[nodiscard]] std::string key_hash(const CacheKey& key);
// "attention-8c61d9f2a0b34e17-02f4b2c9d1e0a573.entry": family, then key.
[[nodiscard]] std::string entry_name(const CacheKey& key);

// Sum over the axes of how many times larger or smaller one is, in powers of two. Requires: equal
// families.
[[nodiscard]] double distance(const CacheKey& one, const CacheKey& other);

// What libraries took that had their turns beside a schedule.
struct CachedBaseline {
  Picoseconds time;
  std::string name;  // "all-gather, product"
  friend bool operator==(const CachedBaseline&, const CachedBaseline&) = default;
};

// What a schedule took that was the fastest of those executed somewhere.
struct CachedTime {
  Picoseconds time;
  std::string backend;    // "cuda"
  std::string processor;  // "NVIDIA H200"
  std::optional<CachedBaseline> baseline = {};
  friend bool operator==(const CachedTime&, const CachedTime&) = default;
};

struct CachedSchedule {
  std::string label;
  Picoseconds predicted;
  std::optional<CachedTime> measured;
  std::int64_t memory_bytes = 0;
  NormalForm form;
  friend bool operator==(const CachedSchedule&, const CachedSchedule&) = default;
};

// The answer.
struct CacheEntry {
  CacheKey key;
  std::string date;                       // "2026-11-21": when it was found
  std::vector<CachedSchedule> schedules;  // best first; one or more
  friend bool operator==(const CacheEntry&, const CacheEntry&) = default;
};

// `cache version 3 hash "…"` and what it is the hash of; parse_cache_entry(print(e), file) == e.
// Errors: I410 not an entry, or cut short, or edited; I411 of another version of this form.
[[nodiscard]] std::string print(const CacheEntry& entry);
[[nodiscard]] Checked<CacheEntry> parse_cache_entry(std::string_view text, const std::string& file);

// The texts of entries that follow each other in one file.
[[nodiscard]] std::vector<std::string_view> split_cache_entries(std::string_view text);

[[nodiscard]] std::string_view print(Contract contract);

}  // namespace harpe
