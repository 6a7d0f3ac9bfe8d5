#include "search/cache_folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "ir/text.h"
#include "support/whole_file.h"

namespace harpe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".entry";

Diag cannot(DiagCode code, const std::string& path, int error) {
  return make_diag(code, {{"path", path}, {"reason", std::strerror(error)}});
}

Checked<CacheEntry> read_entry(const std::string& path) {
  HP_TRY(const std::string text, read_whole(path));
  HP_TRY(CacheEntry entry, parse_cache_entry(text, path));
  if (fs::path(path).filename() != entry_name(entry.key)) {
    return make_diag(DiagCode::I412, {{"path", path}, {"found", entry_name(entry.key)}});
  }
  return entry;
}

// The names in the folder, in order. Errors: I101.
Checked<std::vector<std::string>> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator at(folder, error);
  if (error == std::errc::no_such_file_or_directory) return names;
  while (!error && at != fs::directory_iterator()) {
    names.push_back(at->path().filename().string());
    at.increment(error);
  }
  if (error) return cannot(DiagCode::I101, folder, error.value());
  std::ranges::sort(names);
  return names;
}

void add(CacheListing& listing, const std::string& path) {
  Checked<CacheEntry> entry = read_entry(path);
  // Another process may have replaced the file during the read; over NFS that invalidates the old
  // file. The second read finds the new one.
  if (!entry.ok() && entry.error().code == DiagCode::I101) entry = read_entry(path);
  if (entry.ok()) {
    listing.files.push_back({path, *std::move(entry)});
    return;
  }
  struct stat status{};  // a file that another process has just removed is skipped silently
  if (::lstat(path.c_str(), &status) == 0) listing.passed_over.push_back(entry.error());
}

bool is_leftover(const std::string& path, std::chrono::system_clock::time_point now) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) return false;
  return now - std::chrono::system_clock::from_time_t(status.st_mtime) >= std::chrono::hours(1);
}

}  // namespace

Checked<CacheListing> list_cache(const std::string& folder) {
  HP_TRY(const std::vector<std::string> names, names_in(folder));
  CacheListing listing;
  for (const std::string& name : names) {
    if (name.ends_with(kExtension)) add(listing, folder + "/" + name);
  }
  return listing;
}

CacheListing find_exact(const std::string& folder, const CacheKey& key) {
  CacheListing listing;
  add(listing, folder + "/" + entry_name(key));
  if (!listing.files.empty() && listing.files.front().entry.key != key) listing.files.clear();
  return listing;
}

CacheListing find_near(const std::string& folder, const CacheKey& key, std::size_t most) {
  CacheListing listing;
  const Checked<std::vector<std::string>> names = names_in(folder);
  if (!names.ok()) {
    listing.passed_over.push_back(names.error());
    return listing;
  }
  const std::string own = entry_name(key);
  const std::string family = own.substr(0, own.rfind('-') + 1);
  for (const std::string& name : *names) {
    if (!name.starts_with(family) || !name.ends_with(kExtension) || name == own) continue;
    add(listing, folder + "/" + name);
  }
  const std::string hash = family_hash(key);
  std::erase_if(listing.files, [&](const CacheFile& file) {
    return family_hash(file.entry.key) != hash || file.entry.key == key;
  });
  std::ranges::stable_sort(listing.files, {},
                           [&](const CacheFile& file) { return distance(key, file.entry.key); });
  if (listing.files.size() > most) {
    listing.files.erase(listing.files.begin() + static_cast<std::ptrdiff_t>(most),
                        listing.files.end());
  }
  return listing;
}

Checked<Ok> store(const std::string& folder, const CacheEntry& entry) {
  return write_whole(folder, entry_name(entry.key), print(entry));
}

Checked<Pruned> prune_cache(const std::string& folder, const std::string& version,
                            const std::optional<std::string>& oldest,
                            std::chrono::system_clock::time_point now) {
  HP_TRY(const std::vector<std::string> names, names_in(folder));
  Pruned pruned;
  for (const std::string& name : names) {
    const std::string path = folder + "/" + name;
    std::int64_t* reason = nullptr;
    if (name.starts_with(kUnfinishedPrefix)) {
      if (is_leftover(path, now)) reason = &pruned.leftovers;
    } else if (name.ends_with(kExtension)) {
      const Checked<CacheEntry> entry = read_entry(path);
      reason = &pruned.kept;
      if (!entry.ok()) {
        reason = &pruned.unreadable;
      } else if (entry->key.version != version) {
        reason = &pruned.foreign;
      } else if (oldest && entry->date < *oldest) {
        reason = &pruned.old;
      }
    }
    if (reason == nullptr) continue;
    std::error_code error;
    if (reason != &pruned.kept) fs::remove(path, error);
    if (error == std::errc::directory_not_empty) {
      pruned.passed_over.push_back(cannot(DiagCode::I102, path, error.value()));
      continue;
    }
    if (error) return cannot(DiagCode::I102, path, error.value());
    ++*reason;
  }
  return pruned;
}

std::vector<Seed> seeds_of(const CacheListing& listing, std::size_t most) {
  std::vector<Seed> seeds;
  for (std::size_t place = 0; place < kMostCached; ++place) {
    for (const CacheFile& file : listing.files) {
      if (place >= file.entry.schedules.size() || seeds.size() == most) continue;
      const CachedSchedule& schedule = file.entry.schedules[place];
      if (std::ranges::find(seeds, schedule.form, &Seed::form) == seeds.end()) {
        seeds.push_back({schedule.label, schedule.form});
      }
    }
  }
  return seeds;
}

}  // namespace harpe
