#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "ir/form.h"
#include "schedule/script.h"

namespace harpe {

// A primitive lists its fields once. Reading a step, writing a step and the usage line all follow
// from this list (schedule/steps.h).

enum class Slot : std::uint8_t { Positional, Keyword, Output };

template <class Struct, class Member>
struct Field {
  std::string_view name;
  Member Struct::* member;
  Slot slot = Slot::Positional;
  bool list = false;  // written with brackets even for one element
};

template <class Struct, class Member>
constexpr Field<Struct, Member> positional(std::string_view name, Member Struct::* member) {
  return {name, member, Slot::Positional, false};
}
template <class Struct, class Member>
constexpr Field<Struct, Member> positional_list(std::string_view name, Member Struct::* member) {
  return {name, member, Slot::Positional, true};
}
template <class Struct, class Member>
constexpr Field<Struct, Member> keyword(std::string_view name, Member Struct::* member) {
  return {name, member, Slot::Keyword, true};
}
template <class Struct>
constexpr Field<Struct, std::vector<std::string>> outputs(
    std::string_view name, std::vector<std::string> Struct::* member) {
  return {name, member, Slot::Output, false};
}

// `fwd.k0`: a loop of a nest.
struct LoopPath {
  std::string nest;
  std::string digit;
  friend bool operator==(const LoopPath&, const LoopPath&) = default;
};

enum class BalanceKind : std::uint8_t { Zigzag, Stripe, Table, None };
[[nodiscard]] std::string_view print(BalanceKind kind);

enum class RouteLayoutKind : std::uint8_t { Slab, Compact };
[[nodiscard]] std::string_view print(RouteLayoutKind kind);

// Digits and numbers, as layouts take them.
using LayoutArgs = std::vector<Scalar>;

// How a field's type is written as a value. expected() describes it for messages; decode() is none
// if the value has another kind; encode() is none if the field is absent.
template <class T>
struct Codec;

template <>
struct Codec<std::string> {
  static std::string expected() { return "a name"; }
  static std::optional<std::string> decode(const Value& value);
  static std::optional<Value> encode(const std::string& name, bool) { return Value{Path{{name}}}; }
};

template <>
struct Codec<Quoted> {
  static std::string expected() { return "a string in quotes"; }
  static std::optional<Quoted> decode(const Value& value);
  static std::optional<Value> encode(const Quoted& quoted, bool) { return Value{quoted}; }
};

template <>
struct Codec<std::int64_t> {
  static std::string expected() { return "an integer"; }
  static std::optional<std::int64_t> decode(const Value& value);
  static std::optional<Value> encode(std::int64_t number, bool) { return Value{number}; }
};

template <>
struct Codec<bool> {
  static std::string expected() { return "`true` or `false`"; }
  static std::optional<bool> decode(const Value& value);
  static std::optional<Value> encode(bool flag, bool) {
    return flag ? std::optional(Value{Path{{"true"}}}) : std::nullopt;
  }
};

template <>
struct Codec<LoopPath> {
  static std::string expected() { return "a loop such as `nest.digit`"; }
  static std::optional<LoopPath> decode(const Value& value);
  static std::optional<Value> encode(const LoopPath& path, bool) {
    return Value{Path{{path.nest, path.digit}}};
  }
};

template <>
struct Codec<std::vector<std::string>> {
  static std::string expected() { return "a name or a list of names"; }
  static std::optional<std::vector<std::string>> decode(const Value& value);
  static std::optional<Value> encode(const std::vector<std::string>& names, bool list);
};

template <>
struct Codec<std::vector<std::int64_t>> {
  static std::string expected() { return "a list of integers"; }
  static std::optional<std::vector<std::int64_t>> decode(const Value& value);
  static std::optional<Value> encode(const std::vector<std::int64_t>& numbers, bool list);
};

template <>
struct Codec<LayoutArgs> {
  static std::string expected() { return "a list of names or integers"; }
  static std::optional<LayoutArgs> decode(const Value& value);
  static std::optional<Value> encode(const LayoutArgs& args, bool);
};

// Closed sets of keywords.
template <class Enum>
struct EnumCodec {
  static std::string expected();
  static std::optional<Enum> decode(const Value& value);
  static std::optional<Value> encode(Enum word, bool) {
    return Value{Path{{std::string(print(word))}}};
  }
};
template <>
struct Codec<How> : EnumCodec<How> {};
template <>
struct Codec<Initiator> : EnumCodec<Initiator> {};
template <>
struct Codec<Via> : EnumCodec<Via> {};
template <>
struct Codec<Signal> : EnumCodec<Signal> {};
template <>
struct Codec<Fence> : EnumCodec<Fence> {};
template <>
struct Codec<MoveKind> : EnumCodec<MoveKind> {};
template <>
struct Codec<BalanceKind> : EnumCodec<BalanceKind> {};
template <>
struct Codec<RouteLayoutKind> : EnumCodec<RouteLayoutKind> {};
template <>
struct Codec<DType> : EnumCodec<DType> {};
template <>
struct Codec<Monoid> : EnumCodec<Monoid> {};

template <class T>
struct Codec<std::optional<T>> {
  static std::string expected() { return Codec<T>::expected(); }
  static std::optional<std::optional<T>> decode(const Value& value) {
    std::optional<T> decoded = Codec<T>::decode(value);
    if (!decoded) return std::nullopt;
    return std::optional<std::optional<T>>(std::in_place, std::move(decoded));
  }
  static std::optional<Value> encode(const std::optional<T>& field, bool list) {
    return field ? Codec<T>::encode(*field, list) : std::nullopt;
  }
};

// Whether a step may omit a field of this type.
template <class T>
constexpr bool kMayBeAbsent = std::is_same_v<T, bool>;
template <class T>
constexpr bool kMayBeAbsent<std::optional<T>> = true;

}  // namespace harpe
