#include "verify/terms.h"

#include <algorithm>
#include <limits>

#include "support/check.h"

namespace harpe::verifier {
namespace {

std::uint32_t hash_of(TermKind kind, std::span<const std::int32_t> words) {
  std::uint64_t hash = 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(kind);
  for (const std::int32_t word : words) {
    hash = (hash ^ static_cast<std::uint32_t>(word)) * 0xff51afd7ed558ccdU;
    hash ^= hash >> 32U;
  }
  return static_cast<std::uint32_t>(hash);
}

}  // namespace

Terms::Terms() : starts_{0}, table_(1024) {
  const TermId empty = intern(TermKind::State, std::span<const std::int32_t>());
  HP_CHECK(empty == empty_state(), "the first term");
}

TermId Terms::find_or_add(TermKind kind, std::span<const std::int32_t> words) {
  const std::uint32_t hash = hash_of(kind, words);
  const std::size_t mask = table_.size() - 1;
  std::size_t at = hash & mask;
  for (; table_[at].id != kNoTerm; at = (at + 1) & mask) {
    if (table_[at].hash != hash) continue;
    if (is(table_[at].id, kind, words)) return table_[at].id;
  }
  const TermId id = add(kind, words);
  table_[at] = {.hash = hash, .id = id};
  if (++entries_ * 2 > table_.size()) grow();
  return id;
}

TermId Terms::add(TermKind kind, std::span<const std::int32_t> words) {
  HP_CHECK(starts_.size() < std::numeric_limits<TermId>::max(), "more terms than ids");
  words_.push_back(static_cast<std::int32_t>(kind));
  words_.insert(words_.end(), words.begin(), words.end());
  starts_.push_back(words_.size());
  return static_cast<TermId>(starts_.size() - 2);
}

void Terms::grow() {
  std::vector<Entry> larger(table_.size() * 2);
  const std::size_t mask = larger.size() - 1;
  for (const Entry& entry : table_) {
    if (entry.id == kNoTerm) continue;
    std::size_t at = entry.hash & mask;
    while (larger[at].id != kNoTerm) at = (at + 1) & mask;
    larger[at] = entry;
  }
  table_ = std::move(larger);
}

TermId Terms::state(std::vector<TermId>& contributions, TermId likely) {
  std::ranges::sort(contributions);
  return intern(TermKind::State, contributions, likely);
}

TermId Terms::combine(TermId a, TermId b, TermId likely) {
  const std::span<const std::int32_t> first = words(a);
  const std::span<const std::int32_t> second = words(b);
  merged_.resize(first.size() + second.size());
  std::ranges::merge(first, second, merged_.begin());
  return intern(TermKind::State, merged_, likely);
}

}  // namespace harpe::verifier
