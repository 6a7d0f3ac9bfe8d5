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

// The stored results of searches (docs/cache.md, commir.md 11.5): one text per question.

constexpr std::int64_t kCacheVersion = 3;  // of the entry format
constexpr std::size_t kMostCached = 8;     // schedules of an entry, not counting measured ones

// The question. Equal keys have equal answers.
struct CacheKey {
  std::string program;       // its name
  std::string program_hash;  // of its canonical text without the sizes of axes
  std::vector<std::pair<std::string, std::int64_t>> sizes;  // of its axes, as declared
  std::string dtype;                                        // of the program's first input
  Contract contract = Contract::Standard;
  NumericsClass numerics = NumericsClass::Rounded;
  std::string mesh;  // "cp=8"
  std::string machine;
  std::string machine_hash;                  // fingerprint
  std::optional<std::int64_t> memory_limit;  // if the caller set one
  std::optional<int> cuts;                   // of the mesh, if the caller set them
  std::string fixed;                         // homes that the caller fixes: "place q[q0@cp]; …"
  std::optional<AxisLayout> layout;          // of positions, if the caller fixes one
  std::string version;                       // of Harpe
  friend bool operator==(const CacheKey&, const CacheKey&) = default;
};

// Requires: a ground program.
[[nodiscard]] CacheKey make_cache_key(const Program& program, const Mesh& mesh,
                                      const Machine& machine, const SearchOptions& options,
                                      std::string_view version);

// Equal for keys that differ only in sizes.
[[nodiscard]] std::string family_hash(const CacheKey& key);
[[nodiscard]] std::string key_hash(const CacheKey& key);
// "attention-8c61d9f2a0b34e17-02f4b2c9d1e0a573.entry": family, then key.
[[nodiscard]] std::string entry_name(const CacheKey& key);

// The sum over the axes of |log2| of the ratio of their sizes. Requires: equal families.
[[nodiscard]] double distance(const CacheKey& one, const CacheKey& other);

// The time of the library baseline that alternated with a schedule.
struct CachedBaseline {
  Picoseconds time;
  std::string name;  // "all-gather, GEMM"
  friend bool operator==(const CachedBaseline&, const CachedBaseline&) = default;
};

// The measured time of the schedule that was the fastest of those executed.
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

// `cache version 3 hash "…"` and the text that is hashed; parse_cache_entry(print(e), file) == e.
// Errors: I410 not an entry, or cut short, or edited; I411 of another version of this form.
[[nodiscard]] std::string print(const CacheEntry& entry);
[[nodiscard]] Checked<CacheEntry> parse_cache_entry(std::string_view text, const std::string& file);

// The texts of consecutive entries of one file.
[[nodiscard]] std::vector<std::string_view> split_cache_entries(std::string_view text);

[[nodiscard]] std::string_view print(Contract contract);

}  // namespace harpe
