#include "ir/form.h"

#include <algorithm>
#include <array>

namespace harpe {
namespace {

// The keyword of each enumerator, in order.
constexpr std::array<std::string_view, 2> kMoveKinds = {"stage", "drain"};
constexpr std::array<std::string_view, 5> kHows = {"bulk", "relay", "direct", "inline", "one_shot"};
constexpr std::array<std::string_view, 2> kInitiators = {"src", "dst"};
constexpr std::array<std::string_view, 7> kVias = {"ce",    "sm",    "tma",     "nccl",
                                                   "proxy", "ibgda", "multimem"};
constexpr std::array<std::string_view, 4> kSignals = {"event", "flag", "counter", "batched"};

template <class Enum, std::size_t N>
std::string_view word_of(const std::array<std::string_view, N>& words, Enum value) {
  return words.at(static_cast<std::size_t>(value));
}

template <class Enum, std::size_t N>
std::optional<Enum> find_word(const std::array<std::string_view, N>& words, std::string_view text) {
  const auto found = std::ranges::find(words, text);
  if (found == words.end()) return std::nullopt;
  return static_cast<Enum>(found - words.begin());
}

template <class Item>
const Item* find_item(const std::vector<Item>& items, std::string Item::* key,
                      std::string_view name) {
  const auto found = std::ranges::find(items, name, key);
  return found == items.end() ? nullptr : &*found;
}

}  // namespace

std::string_view print(MoveKind kind) { return word_of(kMoveKinds, kind); }
std::string_view print(How how) { return word_of(kHows, how); }
std::string_view print(Initiator by) { return word_of(kInitiators, by); }
std::string_view print(Via via) { return word_of(kVias, via); }
std::string_view print(Signal signal) { return word_of(kSignals, signal); }

std::optional<How> parse_how(std::string_view text) { return find_word<How>(kHows, text); }
std::optional<Initiator> parse_initiator(std::string_view text) {
  return find_word<Initiator>(kInitiators, text);
}
std::optional<Via> parse_via(std::string_view text) { return find_word<Via>(kVias, text); }
std::optional<Signal> parse_signal(std::string_view text) {
  return find_word<Signal>(kSignals, text);
}

const Split* find_split(const NormalForm& form, std::string_view axis) {
  return find_item(form.splits, &Split::axis, axis);
}

const Place* find_place(const NormalForm& form, std::string_view buffer) {
  return find_item(form.places, &Place::buffer, buffer);
}

const NestForm* find_nest(const NormalForm& form, std::string_view nest) {
  return find_item(form.nests, &NestForm::nest, nest);
}

Mesh refined(const Mesh& mesh, const NormalForm& form) {
  Mesh result{.name = mesh.name, .axes = {}};
  for (const MeshAxis& axis : mesh.axes) {
    const Refine* const refine = find_item(form.refines, &Refine::axis, axis.name);
    if (refine == nullptr) {
      result.axes.push_back(axis);
    } else {
      result.axes.insert(result.axes.end(), refine->parts.begin(), refine->parts.end());
    }
  }
  return result;
}

}  // namespace harpe
