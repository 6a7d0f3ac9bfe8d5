#include "verify/rounding.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace harpe::verifier {
namespace {

// A contribution on its way to its final place, or a value that is copied.
struct Addition {
  TermId term;
  std::vector<DType> roundings;  // in order
  bool is_addend = false;        // added after a kernel's own sum
};

class RoundingCheck {
 public:
  RoundingCheck(const Plan& plan, const Words& words, const Resolved& resolved, const Terms& terms)
      : plan_(plan), words_(words), resolved_(resolved), terms_(terms) {}

  Checked<Ok> run(Execution& of_plan, Execution& of_launches) {
    for (std::size_t id = 0; id < plan_.allocs.size(); ++id) {
      const auto alloc = static_cast<std::int32_t>(id);
      const Footprint& footprint = resolved_.footprint(alloc);
      const Model& model = words_.model();
      const BufferModel& buffer = model.buffers[static_cast<std::size_t>(footprint.buffer)];
      if (plan_.allocs[id].level != Level::Home || buffer.role != Role::Out) continue;
      rank_ = plan_.allocs[id].rank;
      buffer_ = footprint.buffer;
      const std::vector<Range> home = home_box(model, buffer);
      std::vector<std::int32_t> point;
      for (const Range& range : home) point.push_back(range.lo);
      do {
        block_ = product(buffer.radix.strides, point);
        if (buffer.is_empty(block_)) continue;
        const std::int64_t cell = product(footprint.cell_strides, point);
        const auto at = static_cast<std::int32_t>(block_);
        HP_REQUIRE_OK(compare(of_plan.held(alloc, cell, at), of_launches.held(alloc, cell, at)));
      } while (next_point(home, point));
    }
    return Ok{};
  }

 private:
  // The blocks of the rank's home, as a box.
  [[nodiscard]] std::vector<Range> home_box(const Model& model, const BufferModel& buffer) const {
    std::vector<Range> box = whole_box(buffer.radix);
    for (std::size_t i = 0; i < box.size(); ++i) {
      if (buffer.home[i].empty()) continue;
      const auto value = static_cast<std::int32_t>(model.coordinate(rank_, buffer.home[i]));
      box[i] = {.lo = value, .hi = value + 1};
    }
    return box;
  }

  [[nodiscard]] std::optional<DType> rounding_of(TermId term) const {
    const TermKind kind = terms_.kind(term);
    const std::span<const std::int32_t> words = terms_.words(term);
    const bool may_be = kind == TermKind::State || kind == TermKind::Value;
    if (!may_be || words.size() != 2 || words[1] >= 0 || words[1] == kAddend) return std::nullopt;
    return static_cast<DType>(-1 - words[1]);
  }

  [[nodiscard]] bool is_addend(TermId term) const {
    const std::span<const std::int32_t> words = terms_.words(term);
    return terms_.kind(term) == TermKind::State && words.size() == 2 && words[1] == kAddend;
  }

  // Lists in order what a term adds up.
  void list(TermId term, std::vector<DType>& behind, std::vector<Addition>& out) const {
    if (is_addend(term)) {
      const std::size_t first = out.size();
      list(terms_.words(term)[0], behind, out);
      for (std::size_t i = first; i < out.size(); ++i) out[i].is_addend = true;
      return;
    }
    if (const std::optional<DType> type = rounding_of(term)) {
      behind.push_back(*type);
      list(terms_.words(term)[0], behind, out);
      behind.pop_back();
      return;
    }
    if (terms_.kind(term) == TermKind::State) {
      for (const TermId part : terms_.words(term)) list(part, behind, out);
      return;
    }
    out.push_back({.term = term, .roundings = {behind.rbegin(), behind.rend()}});
  }

  [[nodiscard]] std::vector<Addition> list(TermId term) const {
    std::vector<Addition> out;
    std::vector<DType> behind;
    list(term, behind, out);
    return out;
  }

  // Identifies an addition, whatever roundings its operands had.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> key_of(TermId term) const {
    const std::span<const std::int32_t> words = terms_.words(term);
    if (terms_.kind(term) == TermKind::Contribution) return {words[0], words[1]};
    if (terms_.kind(term) == TermKind::Value) return {-1 - words[1], words[2]};
    return {-1000, term};
  }

  Checked<Ok> compare(TermId planned, TermId launched) {
    if (planned == launched || planned == kNoTerm || launched == kNoTerm) return Ok{};
    const auto pair =
        static_cast<std::uint64_t>(planned) << 32U | static_cast<std::uint32_t>(launched);
    if (!compared_.insert(pair).second) return Ok{};
    const std::vector<Addition> wanted = list(planned);
    const std::vector<Addition> found = list(launched);
    HP_REQUIRE_OK(compare_order(wanted, found));
    std::unordered_map<std::int64_t, const Addition*> by_key;
    for (const Addition& each : wanted) by_key[hash_of(each.term)] = &each;
    for (const Addition& each : found) {
      const auto same = by_key.find(hash_of(each.term));
      if (same == by_key.end()) continue;
      HP_REQUIRE_OK(compare_paths(*same->second, each));
      HP_REQUIRE_OK(compare_parts(same->second->term, each.term));
    }
    return Ok{};
  }

  [[nodiscard]] std::int64_t hash_of(TermId term) const {
    const auto [first, second] = key_of(term);
    return first << 32U ^ second;
  }

  Checked<Ok> compare_paths(const Addition& planned, const Addition& launched) const {
    std::size_t at = 0;
    for (const DType type : planned.roundings) {
      if (at < launched.roundings.size() && launched.roundings[at] == type) ++at;
    }
    if (at == launched.roundings.size()) return Ok{};
    return make_diag(DiagCode::V720, {{"block", words_.block(buffer_, block_)},
                                      {"rank", rank_.value},
                                      {"contribution", name_of(launched.term)},
                                      {"launched", list_types(launched.roundings)},
                                      {"planned", list_types(planned.roundings)}});
  }

  // Compares the operands of a contribution, or the state of a value.
  Checked<Ok> compare_parts(TermId planned, TermId launched) {
    if (planned == launched || terms_.kind(planned) != terms_.kind(launched)) return Ok{};
    const std::vector<std::int32_t> wanted = copy_of(planned);
    const std::vector<std::int32_t> found = copy_of(launched);
    if (wanted.size() != found.size()) return Ok{};
    switch (terms_.kind(planned)) {
      case TermKind::Contribution:
        for (std::size_t i = 2; i < wanted.size(); ++i) {
          HP_REQUIRE_OK(compare(wanted[i], found[i]));
        }
        return Ok{};
      case TermKind::Value:
        return compare(wanted[3], found[3]);
      case TermKind::Part:
        return compare(wanted[0], found[0]);
      default:
        return Ok{};
    }
  }

  [[nodiscard]] std::vector<std::int32_t> copy_of(TermId term) const {
    const std::span<const std::int32_t> words = terms_.words(term);
    return {words.begin(), words.end()};
  }

  // Checks the plan's order. If a kernel adds other ranks' contributions, its own may come first.
  Checked<Ok> compare_order(const std::vector<Addition>& planned,
                            const std::vector<Addition>& launched) const {
    std::vector<std::int64_t> wanted;
    std::vector<std::int64_t> found;
    for (const Addition& each : planned) wanted.push_back(hash_of(each.term));
    for (const Addition& each : launched) found.push_back(hash_of(each.term));
    if (wanted == found || wanted.empty() || found.empty()) return Ok{};
    const auto behind = std::ranges::find(launched, true, &Addition::is_addend);
    const auto own = behind - launched.begin();
    const auto first = std::ranges::find(wanted, found.front());
    if (behind != launched.end() && own <= wanted.end() - first) {
      std::rotate(wanted.begin(), first, first + own);
      if (wanted == found) return Ok{};
    }
    return make_diag(DiagCode::V721, {{"block", words_.block(buffer_, block_)},
                                      {"rank", rank_.value},
                                      {"launched", first_of(launched)},
                                      {"planned", first_of(planned)}});
  }

  [[nodiscard]] std::string first_of(const std::vector<Addition>& additions) const {
    constexpr std::size_t kNamed = 4;
    std::string text;
    for (std::size_t i = 0; i < std::min(kNamed, additions.size()); ++i) {
      text += (i == 0 ? "" : ", ") + name_of(additions[i].term);
    }
    return text + (additions.size() > kNamed ? ", …" : "");
  }

  [[nodiscard]] std::string name_of(TermId term) const {
    const std::span<const std::int32_t> words = terms_.words(term);
    if (terms_.kind(term) != TermKind::Contribution) return "a value";
    const auto statement = static_cast<std::size_t>(words[0]);
    return words_.iteration(words_.model().statements[statement].nest, words[1]);
  }

  [[nodiscard]] static std::string list_types(const std::vector<DType>& types) {
    std::string text;
    for (const DType type : types) text += (text.empty() ? "" : ", ") + std::string(print(type));
    return text.empty() ? "nothing" : text;
  }

  const Plan& plan_;
  const Words& words_;
  const Resolved& resolved_;
  const Terms& terms_;
  RankId rank_;
  std::int32_t buffer_ = 0;
  std::int64_t block_ = 0;
  std::unordered_set<std::uint64_t> compared_;
};

}  // namespace

Checked<Ok> check_rounding(const Plan& plan, const Words& words, const Resolved& resolved,
                           const Terms& terms, Execution& of_plan, Execution& of_launches) {
  return RoundingCheck(plan, words, resolved, terms).run(of_plan, of_launches);
}

}  // namespace harpe::verifier
