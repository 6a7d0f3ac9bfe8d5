#include "search/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/hash.h"
#include "tests/unit/search/cache_fixture.h"

namespace harpe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(CacheKey, names_the_sizes_of_axes_and_what_else_was_asked) {
  const CacheKey key = key_of(128);
  EXPECT_THAT(key.sizes, ElementsAre(Pair("M", 128), Pair("N", 64), Pair("K", 32)));
  EXPECT_EQ(key.program, "gemm");
  EXPECT_EQ(key.dtype, "bf16");
  EXPECT_EQ(key.mesh, "tp=2");
}

TEST(CacheKey, of_other_sizes_is_another_key_of_the_same_family) {
  EXPECT_EQ(family_hash(key_of(128)), family_hash(key_of(256)));
  EXPECT_NE(key_hash(key_of(128)), key_hash(key_of(256)));
  EXPECT_EQ(entry_name(key_of(128)), entry_name(key_of(128)));
}

TEST(CacheKey, of_anything_else_is_another_family) {
  const CacheKey key = key_of(128);
  std::vector<CacheKey> others(12, key);
  others[0].program_hash = "0";
  others[1].dtype = "f32";
  others[2].contract = Contract::Free;
  others[3].numerics = NumericsClass::Exact;
  others[4].mesh = "tp=4";
  others[5].machine_hash = "0";
  others[6].memory_limit = 1 << 20;
  others[7].fixed = "place a[m0@tp]";
  others[8].version = "0.2.0";
  others[9].cuts = 2;
  others[10].layout = AxisLayout::Contiguous;
  others[11].layout = AxisLayout::Zigzag;
  for (const CacheKey& other : others) {
    EXPECT_NE(family_hash(other), family_hash(key)) << print(entry_of(other, "x"));
  }
}

TEST(CacheKey, says_which_homes_stay) {
  SearchOptions options;
  options.constraints.homes = {{.buffer = "a", .at = {{"m0", {"tp"}}}, .partial = {}}};
  Machine machine;
  const CacheKey key =
      make_cache_key(product(8, 8, 8), {.name = "m", .axes = {{"tp", 2}}}, machine, options, "1");
  EXPECT_EQ(key.fixed, "place a[m0@tp]");
}

TEST(CacheKey, is_as_far_from_another_as_its_sizes_are_in_powers_of_two) {
  EXPECT_EQ(distance(key_of(128), key_of(128)), 0);
  EXPECT_EQ(distance(key_of(128), key_of(512)), 2);
  EXPECT_EQ(distance(key_of(128, 64), key_of(64, 128)), 2);
}

TEST(CacheEntry, reads_back_as_it_was) {
  CacheEntry entry = entry_of(key_of(128), "ring");
  EXPECT_EQ(parse_cache_entry(print(entry), "f").value(), entry);
  entry.key.memory_limit = 1 << 30;
  entry.key.cuts = 2;
  entry.key.fixed = "place a[m0@tp]";
  entry.key.layout = AxisLayout::Zigzag;
  entry.key.contract = Contract::Free;
  entry.key.numerics = NumericsClass::Exact;
  entry.schedules.push_back(entry_of(key_of(1), "fetch").schedules.front());
  entry.schedules[1].measured = {
      .time = Picoseconds(7), .backend = "cuda", .processor = "NVIDIA H200"};
  EXPECT_EQ(parse_cache_entry(print(entry), "f").value(), entry);
  entry.schedules[1].measured->baseline = {.time = Picoseconds(6), .name = "all-gather, GEMM"};
  EXPECT_EQ(parse_cache_entry(print(entry), "f").value(), entry);
}

TEST(CacheEntry, is_text_that_a_person_can_read) {
  EXPECT_THAT(print(entry_of(key_of(128), "ring")),
              HasSubstr("  sizes M = 128, N = 64, K = 32\n  dtype \"bf16\"\n  contract standard\n"
                        "  numerics rounded\n  mesh \"tp=2\"\n"));
}

TEST(CacheEntry, cut_short_anywhere_is_refused) {
  const std::string whole = print(entry_of(key_of(128), "ring"));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Checked<CacheEntry> entry = parse_cache_entry(whole.substr(0, size), "f");
    ASSERT_FALSE(entry.ok()) << size;
    ASSERT_EQ(entry.error().code, DiagCode::I410) << size;
  }
}

TEST(CacheEntry, with_any_byte_changed_is_refused) {
  const std::string whole = print(entry_of(key_of(128), "ring"));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = changed[i] == '7' ? '8' : '7';
    ASSERT_FALSE(parse_cache_entry(changed, "f").ok()) << i;
  }
}

// The error that a user sees after editing a file and its hash.
TEST(CacheEntry, with_a_wrong_word_says_where) {
  const std::string whole = print(entry_of(key_of(128), "ring"));
  const auto refusal_with = [&](const std::string& from, const std::string& to) {
    std::string body = whole.substr(whole.find('\n') + 1);
    body.replace(body.find(from), from.size(), to);
    const Checked<CacheEntry> entry =
        parse_cache_entry("cache version 3 hash \"" + hash_text(body) + "\"\n" + body, "f");
    return entry.ok() ? "" : render(entry.error());
  };
  EXPECT_THAT(refusal_with("contract standard", "contract any"),
              HasSubstr("error[I410]: `f` is no plan cache entry: line 6: expected a contract"));
  EXPECT_THAT(refusal_with("2026-11-21", "yesterday"), HasSubstr("line 11: expected a date"));
  EXPECT_THAT(refusal_with("nest mm", "nest"),
              HasSubstr("error[I410]: `f` is no plan cache entry"));
  EXPECT_EQ(refusal_with("ring", "rung"), "");
}

TEST(CacheEntry, of_another_version_is_told_apart_from_a_damaged_one) {
  const Checked<CacheEntry> entry = parse_cache_entry("cache version 9 lz4 whatever\n", "f");
  ASSERT_FALSE(entry.ok());
  EXPECT_EQ(render(entry.error()),
            "error[I411]: `f` is in form 9 of the plan cache, and this version reads 3; tune "
            "again, or leave it to the version that wrote it");
}

TEST(CacheEntry, many_follow_each_other_in_one_text) {
  const std::string one = print(entry_of(key_of(128), "ring"));
  const std::string two = print(entry_of(key_of(256), "fetch"));
  EXPECT_THAT(split_cache_entries(one + two), ElementsAre(one, two));
  EXPECT_THAT(split_cache_entries(""), ElementsAre());
  EXPECT_THAT(split_cache_entries("nonsense"), ElementsAre("nonsense"));
}

}  // namespace
}  // namespace harpe
