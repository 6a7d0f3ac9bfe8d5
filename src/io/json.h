#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace harpe {

// A JSON value, written but never read: members keep the order they were added in, so that equal
// results are equal texts.
class Json {
 public:
  struct Member;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;

  Json() = default;  // null
  Json(bool value) : value_(value) {}
  template <class Integer>
    requires(std::is_integral_v<Integer> && !std::is_same_v<Integer, bool>)
  Json(Integer value) : value_(static_cast<std::int64_t>(value)) {}
  Json(double value) : value_(value) {}  // null when not finite: JSON has no word for it
  Json(std::string value) : value_(std::move(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  [[nodiscard]] static Json object();

  // Requires: this is an object.
  Json& set(std::string name, Json value);

  // Two-space indent, no newline at the end.
  [[nodiscard]] std::string print() const;
  // On one line.
  [[nodiscard]] std::string print_line() const;

 private:
  void append(std::string& out, int indent) const;

  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
};

struct Json::Member {
  std::string name;
  Json value;
};

}  // namespace harpe
