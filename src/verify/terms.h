#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace harpe::verifier {

using TermId = std::int32_t;
constexpr TermId kNoTerm = -1;
// In Bits: marks a state of another rank that a kernel adds after its own sum, in place of the type
// to which a state is rounded (verify/execution.h, Bits).
constexpr std::int32_t kAddend = -1000;

enum class TermKind : std::int32_t {
  Input,         // buffer, block
  Contribution,  // statement, iteration, then the terms of every operand block
  State,         // contributions, ascending, with repetitions
  Value,         // statement, target, block, state: a finalised state, or a stored value
  Part,          // term, digit, value: what iterations with this value need of a block
};

// Free terms, each stored once. Two blocks hold the same value for all inputs and all leaf
// functions if and only if their ids are equal. Terms are compared in full, never by hash alone.
class Terms {
 public:
  Terms();

  // `likely` is compared first: among millions of terms it is in the CPU cache, unlike an entry
  // found by hash.
  [[nodiscard]] TermId intern(TermKind kind, std::span<const std::int32_t> words,
                              TermId likely = kNoTerm) {
    return is(likely, kind, words) ? likely : find_or_add(kind, words);
  }
  [[nodiscard]] TermId intern(TermKind kind, std::initializer_list<std::int32_t> words,
                              TermId likely = kNoTerm) {
    return intern(kind, std::span(words.begin(), words.size()), likely);
  }
  // Adds a term without an entry in the table. Only for words that no other term can have, and that
  // later lookups find through this id as `likely`.
  [[nodiscard]] TermId add_likely(TermKind kind, std::span<const std::int32_t> words) {
    return add(kind, words);
  }
  [[nodiscard]] TermKind kind(TermId id) const {
    return static_cast<TermKind>(words_[starts_[static_cast<std::size_t>(id)]]);
  }
  // The words after the kind. Valid until the next intern.
  [[nodiscard]] std::span<const std::int32_t> words(TermId id) const {
    const auto i = static_cast<std::size_t>(id);
    return std::span(words_).subspan(starts_[i] + 1, starts_[i + 1] - starts_[i] - 1);
  }

  // The state of these contributions; sorts `contributions`.
  [[nodiscard]] TermId state(std::vector<TermId>& contributions, TermId likely = kNoTerm);
  [[nodiscard]] TermId combine(TermId a, TermId b, TermId likely = kNoTerm);  // of two states
  [[nodiscard]] TermId empty_state() const { return 0; }

 private:
  [[nodiscard]] bool is(TermId id, TermKind kind, std::span<const std::int32_t> words) const {
    return id != kNoTerm && this->kind(id) == kind && std::ranges::equal(this->words(id), words);
  }
  [[nodiscard]] TermId find_or_add(TermKind kind, std::span<const std::int32_t> words);
  [[nodiscard]] TermId add(TermKind kind, std::span<const std::int32_t> words);
  void grow();

  std::vector<std::int32_t> words_;  // all terms in a row, each preceded by its kind
  std::vector<std::size_t> starts_;  // per term, and one past the last
  struct Entry {
    std::uint32_t hash = 0;
    TermId id = kNoTerm;
  };
  std::vector<Entry> table_;  // open addressing; a power of two, at most half full
  std::size_t entries_ = 0;   // in table_
  std::vector<TermId> merged_;
};

}  // namespace harpe::verifier
