#include "schedule/fields.h"

#include <array>
#include <span>

namespace harpe {
namespace {

// The keywords of a closed set, in the order in which messages list them.
template <class Enum>
struct Words;
template <>
struct Words<How> {
  static constexpr std::array kAll = {How::Bulk, How::Relay, How::Direct, How::Inline,
                                      How::OneShot};
};
template <>
struct Words<Initiator> {
  static constexpr std::array kAll = {Initiator::Src, Initiator::Dst};
};
template <>
struct Words<Via> {
  static constexpr std::array kAll = {Via::Ce,    Via::Sm,    Via::Tma,     Via::Nccl,
                                      Via::Proxy, Via::Ibgda, Via::Multimem};
};
template <>
struct Words<Signal> {
  static constexpr std::array kAll = {Signal::Event, Signal::Flag, Signal::Counter,
                                      Signal::Batched};
};
template <>
struct Words<Fence> {
  static constexpr std::array kAll = {Fence::PerPut,  Fence::PerDestination, Fence::NicOrdered,
                                      Fence::Batched, Fence::OneQuiet,       Fence::Immediate};
};
template <>
struct Words<MoveKind> {
  static constexpr std::array kAll = {MoveKind::Stage, MoveKind::Drain};
};
template <>
struct Words<BalanceKind> {
  static constexpr std::array kAll = {BalanceKind::Zigzag, BalanceKind::Stripe, BalanceKind::Table,
                                      BalanceKind::None};
};
template <>
struct Words<RouteLayoutKind> {
  static constexpr std::array kAll = {RouteLayoutKind::Slab, RouteLayoutKind::Compact};
};
template <>
struct Words<DType> {
  static constexpr std::array kAll = {DType::F32,    DType::F16,    DType::BF16, DType::F64,
                                      DType::F8E4M3, DType::F8E5M2, DType::I8,   DType::U8,
                                      DType::I32,    DType::I64,    DType::Bool};
};
template <>
struct Words<Monoid> {
  static constexpr std::array kAll = {Monoid::Sum, Monoid::Max, Monoid::Lse};
};

const std::string* name_in(const Value& value) {
  const auto* path = std::get_if<Path>(&value.value);
  return path != nullptr && path->parts.size() == 1 ? &path->parts[0] : nullptr;
}

template <class T>
std::optional<std::vector<T>> decode_list(const Value& value) {
  std::vector<T> items;
  const auto* list = std::get_if<std::vector<Value>>(&value.value);
  const std::span<const Value> values = list == nullptr ? std::span(&value, 1) : std::span(*list);
  for (const Value& item : values) {
    std::optional<T> decoded = Codec<T>::decode(item);
    if (!decoded) return std::nullopt;
    items.push_back(std::move(*decoded));
  }
  return items;
}

template <class T>
Value encode_list(const std::vector<T>& items) {
  std::vector<Value> values;
  for (const T& item : items) values.push_back(*Codec<T>::encode(item, false));
  return Value{std::move(values)};
}

}  // namespace

std::string_view print(BalanceKind kind) {
  switch (kind) {
    case BalanceKind::Zigzag:
      return "zigzag";
    case BalanceKind::Stripe:
      return "stripe";
    case BalanceKind::Table:
      return "table";
    case BalanceKind::None:
      return "none";
  }
  HP_CHECK(false, "unknown balance kind");
}

std::string_view print(RouteLayoutKind kind) {
  return kind == RouteLayoutKind::Slab ? "slab" : "compact";
}

std::optional<std::string> Codec<std::string>::decode(const Value& value) {
  const std::string* name = name_in(value);
  return name == nullptr ? std::nullopt : std::optional(*name);
}

std::optional<Quoted> Codec<Quoted>::decode(const Value& value) {
  const auto* quoted = std::get_if<Quoted>(&value.value);
  return quoted == nullptr ? std::nullopt : std::optional(*quoted);
}

std::optional<std::int64_t> Codec<std::int64_t>::decode(const Value& value) {
  const auto* number = std::get_if<std::int64_t>(&value.value);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

std::optional<bool> Codec<bool>::decode(const Value& value) {
  const std::string* name = name_in(value);
  if (name == nullptr || (*name != "true" && *name != "false")) return std::nullopt;
  return *name == "true";
}

std::optional<LoopPath> Codec<LoopPath>::decode(const Value& value) {
  const auto* path = std::get_if<Path>(&value.value);
  if (path == nullptr || path->parts.size() != 2) return std::nullopt;
  return LoopPath{path->parts[0], path->parts[1]};
}

std::optional<std::vector<std::string>> Codec<std::vector<std::string>>::decode(
    const Value& value) {
  return decode_list<std::string>(value);
}

std::optional<Value> Codec<std::vector<std::string>>::encode(const std::vector<std::string>& names,
                                                             bool list) {
  if (names.size() == 1 && !list) return Value{Path{{names[0]}}};
  return encode_list(names);
}

std::optional<std::vector<std::int64_t>> Codec<std::vector<std::int64_t>>::decode(
    const Value& value) {
  if (!std::holds_alternative<std::vector<Value>>(value.value)) return std::nullopt;
  return decode_list<std::int64_t>(value);
}

std::optional<Value> Codec<std::vector<std::int64_t>>::encode(
    const std::vector<std::int64_t>& numbers, bool) {
  return encode_list(numbers);
}

std::optional<LayoutArgs> Codec<LayoutArgs>::decode(const Value& value) {
  const auto* list = std::get_if<std::vector<Value>>(&value.value);
  if (list == nullptr) return std::nullopt;
  LayoutArgs args;
  for (const Value& item : *list) {
    const std::string* name = name_in(item);
    const auto* number = std::get_if<std::int64_t>(&item.value);
    if (name == nullptr && number == nullptr) return std::nullopt;
    if (name != nullptr) args.emplace_back(Name{*name});
    if (number != nullptr) args.emplace_back(*number);
  }
  return args;
}

std::optional<Value> Codec<LayoutArgs>::encode(const LayoutArgs& args, bool) {
  std::vector<Value> values;
  for (const Scalar& arg : args) {
    Value& item = values.emplace_back();
    if (const auto* name = std::get_if<Name>(&arg)) item.value = Path{{name->text}};
    if (const auto* number = std::get_if<std::int64_t>(&arg)) item.value = *number;
  }
  return Value{std::move(values)};
}

template <class Enum>
std::string EnumCodec<Enum>::expected() {
  std::string out = "one of";
  for (const Enum word : Words<Enum>::kAll) out += " `" + std::string(print(word)) + "`";
  return out;
}

template <class Enum>
std::optional<Enum> EnumCodec<Enum>::decode(const Value& value) {
  const std::string* name = name_in(value);
  if (name == nullptr) return std::nullopt;
  for (const Enum word : Words<Enum>::kAll) {
    if (print(word) == *name) return word;
  }
  return std::nullopt;
}

template struct EnumCodec<How>;
template struct EnumCodec<Initiator>;
template struct EnumCodec<Via>;
template struct EnumCodec<Signal>;
template struct EnumCodec<Fence>;
template struct EnumCodec<MoveKind>;
template struct EnumCodec<BalanceKind>;
template struct EnumCodec<RouteLayoutKind>;
template struct EnumCodec<DType>;
template struct EnumCodec<Monoid>;

}  // namespace harpe
