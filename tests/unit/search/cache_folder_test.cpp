#include "search/cache_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <filesystem>

#include "tests/support/child_process.h"
#include "tests/support/scratch.h"
#include "tests/unit/search/cache_fixture.h"

namespace harpe {
namespace {

using testing::ElementsAre;

std::vector<DiagCode> codes_of(const CacheListing& listing) {
  std::vector<DiagCode> codes;
  for (const Diag& diag : listing.passed_over) codes.push_back(diag.code);
  return codes;
}

std::vector<std::int64_t> rows_of(const CacheListing& listing) {
  std::vector<std::int64_t> rows;
  for (const CacheFile& file : listing.files) rows.push_back(file.entry.key.sizes[0].second);
  return rows;
}

TEST(CacheFolder, that_is_missing_is_empty_and_made_by_the_first_entry) {
  const Scratch scratch;
  const std::string folder = scratch.path("deep/er");
  EXPECT_TRUE(list_cache(folder).value().files.empty());
  EXPECT_TRUE(find_exact(folder, key_of(1)).files.empty());
  EXPECT_TRUE(find_near(folder, key_of(1)).files.empty());
  ASSERT_TRUE(store(folder, entry_of(key_of(1), "ring")).ok());
  EXPECT_EQ(find_exact(folder, key_of(1)).files.front().entry, entry_of(key_of(1), "ring"));
}

TEST(CacheFolder, finds_the_exact_key_alone) {
  const Scratch scratch;
  ASSERT_TRUE(store(scratch.path("c"), entry_of(key_of(128), "ring")).ok());
  EXPECT_EQ(find_exact(scratch.path("c"), key_of(128)).files.size(), 1U);
  EXPECT_EQ(find_exact(scratch.path("c"), key_of(256)).files.size(), 0U);
}

TEST(CacheFolder, keeps_the_last_of_two_answers) {
  const Scratch scratch;
  ASSERT_TRUE(store(scratch.path("c"), entry_of(key_of(128), "ring")).ok());
  ASSERT_TRUE(store(scratch.path("c"), entry_of(key_of(128), "fetch")).ok());
  const CacheListing listing = list_cache(scratch.path("c")).value();
  ASSERT_EQ(listing.files.size(), 1U);
  EXPECT_EQ(listing.files.front().entry.schedules.front().label, "fetch");
}

TEST(CacheFolder, finds_near_keys_of_the_family_nearest_first) {
  const Scratch scratch;
  const std::string folder = scratch.path("c");
  for (const std::int64_t m : {4096, 100, 128, 300, 32}) {
    ASSERT_TRUE(store(folder, entry_of(key_of(m), "ring")).ok());
  }
  CacheKey other = key_of(130);
  other.mesh = "tp=4";
  ASSERT_TRUE(store(folder, entry_of(other, "ring")).ok());
  EXPECT_THAT(rows_of(find_near(folder, key_of(128))), ElementsAre(100, 300, 32, 4096));
  EXPECT_THAT(rows_of(find_near(folder, key_of(128), 2)), ElementsAre(100, 300));
}

TEST(CacheFolder, seeds_are_schedules_once_each) {
  const Scratch scratch;
  const std::string folder = scratch.path("c");
  ASSERT_TRUE(store(folder, entry_of(key_of(64), "ring")).ok());
  ASSERT_TRUE(store(folder, entry_of(key_of(32), "ring")).ok());
  ASSERT_TRUE(store(folder, entry_of(key_of(16), "fetch")).ok());
  EXPECT_EQ(seeds_of(find_near(folder, key_of(128))).size(), 2U);
  EXPECT_EQ(seeds_of(find_near(folder, key_of(128)), 1).size(), 1U);
}

TEST(CacheFolder, passes_over_what_it_cannot_use_and_says_so) {
  const Scratch scratch;
  const std::string folder = scratch.path("c");
  ASSERT_TRUE(store(folder, entry_of(key_of(64), "ring")).ok());
  const std::string own = entry_name(key_of(64));
  const std::string family = own.substr(0, own.rfind('-') + 1);
  scratch.write("c/" + family + "1.entry", "");
  scratch.write("c/" + family + "2.entry", "cache version 2\n");
  scratch.write("c/" + family + "3.entry", print(entry_of(key_of(32), "ring")));
  std::filesystem::create_directory(scratch.path("c/" + family + "4.entry"));
  scratch.write("c/notes.txt", "not ours");
  const std::vector<DiagCode> wanted = {DiagCode::I410, DiagCode::I411, DiagCode::I412,
                                        DiagCode::I101};
  const CacheListing all = list_cache(folder).value();
  EXPECT_EQ(codes_of(all), wanted);
  EXPECT_THAT(rows_of(all), ElementsAre(64));
  const CacheListing near = find_near(folder, key_of(128));
  EXPECT_EQ(codes_of(near), wanted);
  EXPECT_THAT(rows_of(near), ElementsAre(64));
}

TEST(CacheFolder, an_exact_entry_that_is_damaged_is_not_there) {
  const Scratch scratch;
  ASSERT_TRUE(store(scratch.path("c"), entry_of(key_of(64), "ring")).ok());
  scratch.write("c/" + entry_name(key_of(64)), "cache version 3 hash \"0\"\nentry");
  const CacheListing found = find_exact(scratch.path("c"), key_of(64));
  EXPECT_TRUE(found.files.empty());
  EXPECT_EQ(codes_of(found), std::vector{DiagCode::I410});
}

TEST(CacheFolder, that_cannot_be_written_or_read_is_refused) {
  const Scratch scratch;
  scratch.write("file", "");
  const Checked<Ok> stored = store(scratch.path("file"), entry_of(key_of(64), "ring"));
  ASSERT_FALSE(stored.ok());
  EXPECT_EQ(stored.error().code, DiagCode::I102);
  const Checked<CacheListing> listed = list_cache(scratch.path("file"));
  ASSERT_FALSE(listed.ok());
  EXPECT_EQ(listed.error().code, DiagCode::I101);
  EXPECT_EQ(codes_of(find_near(scratch.path("file"), key_of(64))), std::vector{DiagCode::I101});
}

// Eight processes write the same keys while a ninth reads them. The reader sees only whole entries,
// each as some process wrote it.
TEST(CacheFolder, is_written_and_read_by_many_processes_at_once) {
  constexpr int kWriters = 8;
  constexpr int kRounds = 40;
  const Scratch scratch;
  const std::string folder = scratch.path("c");
  std::vector<pid_t> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    const pid_t child = start_child([&] {
      bool good = true;
      for (int round = 0; round < kRounds; ++round) {
        CacheEntry entry = entry_of(key_of(64 + round % 2), "ring");
        entry.schedules.resize(static_cast<std::size_t>(writer + 1), entry.schedules.front());
        good = good && store(folder, entry).ok();
      }
      return good ? 0 : 1;
    });
    ASSERT_GE(child, 0);
    writers.push_back(child);
  }
  int running = kWriters;
  int seen = 0;
  while (running > 0) {
    const CacheListing listing = list_cache(folder).value();
    ASSERT_TRUE(listing.passed_over.empty()) << render(listing.passed_over.front());
    seen += static_cast<int>(listing.files.size());
    int status = 0;
    while (::waitpid(-1, &status, WNOHANG) > 0) {
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
      --running;
    }
  }
  EXPECT_GT(seen, 0);
  EXPECT_THAT(rows_of(list_cache(folder).value()).size(), 2U);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 2);  // no leftovers
}

TEST(CacheFolder, is_pruned_of_what_is_of_no_use) {
  const Scratch scratch;
  const std::string folder = scratch.path("c");
  CacheEntry old = entry_of(key_of(16), "ring");
  old.date = "2025-01-31";
  CacheEntry foreign = entry_of(key_of(32), "ring");
  foreign.key.version = "0.0.9";
  for (const CacheEntry& entry : {old, foreign, entry_of(key_of(64), "ring")}) {
    ASSERT_TRUE(store(folder, entry).ok());
  }
  scratch.write("c/broken.entry", "cache");
  scratch.write("c/.writing-abc", "half");
  scratch.write("c/notes.txt", "not ours");
  const auto now = std::chrono::system_clock::now();
  EXPECT_EQ(prune_cache(folder, "0.1.0", std::nullopt, now).value(),
            (Pruned{.unreadable = 1, .foreign = 1, .old = 0, .leftovers = 0, .kept = 2}));
  EXPECT_EQ(prune_cache(folder, "0.1.0", "2026-01-01", now + std::chrono::hours(2)).value(),
            (Pruned{.unreadable = 0, .foreign = 0, .old = 1, .leftovers = 1, .kept = 1}));
  EXPECT_THAT(rows_of(list_cache(folder).value()), ElementsAre(64));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 2);
}

// None of these may block the reader or be read without end.
TEST(CacheFolder, passes_over_what_is_no_file) {
  const Scratch scratch;
  const std::string folder = scratch.path("c");
  ASSERT_TRUE(store(folder, entry_of(key_of(64), "ring")).ok());
  std::filesystem::create_directories(scratch.path("c/empty.entry"));
  std::filesystem::create_directories(scratch.path("c/full.entry/of"));
  ASSERT_EQ(::mkfifo(scratch.path("c/pipe.entry").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/zero", scratch.path("c/zero.entry"));
  const CacheListing listing = list_cache(folder).value();
  EXPECT_THAT(rows_of(listing), ElementsAre(64));
  EXPECT_THAT(codes_of(listing),
              ElementsAre(DiagCode::I101, DiagCode::I101, DiagCode::I101, DiagCode::I101));
  const Pruned pruned =
      prune_cache(folder, "0.1.0", std::nullopt, std::chrono::system_clock::now()).value();
  EXPECT_EQ(pruned.unreadable, 3);
  EXPECT_EQ(pruned.kept, 1);
  ASSERT_EQ(pruned.passed_over.size(), 1U);
  EXPECT_EQ(
      render(pruned.passed_over.front(), "warning"),
      "warning[I102]: cannot write `" + scratch.path("c/full.entry") + "`: Directory not empty");
}

}  // namespace
}  // namespace harpe
