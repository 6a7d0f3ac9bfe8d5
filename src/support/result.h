#pragma once

#include <optional>
#include <utility>
#include <variant>

#include "support/check.h"

namespace harpe {

// A value or an error. It replaces std::expected, which g++ 12 lacks in C++20.
template <class T, class E>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(E error) : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  [[nodiscard]] const T& value() const& {
    HP_CHECK(ok(), "value() of a failed result");
    return std::get<0>(state_);
  }
  [[nodiscard]] T& value() & {
    HP_CHECK(ok(), "value() of a failed result");
    return std::get<0>(state_);
  }
  [[nodiscard]] T&& value() && {
    HP_CHECK(ok(), "value() of a failed result");
    return std::get<0>(std::move(state_));
  }
  [[nodiscard]] const E& error() const& {
    HP_CHECK(!ok(), "error() of a good result");
    return std::get<1>(state_);
  }
  [[nodiscard]] E& error() & {
    HP_CHECK(!ok(), "error() of a good result");
    return std::get<1>(state_);
  }
  [[nodiscard]] E&& error() && {
    HP_CHECK(!ok(), "error() of a good result");
    return std::get<1>(std::move(state_));
  }

  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }

 private:
  std::variant<T, E> state_;
};

// Success without a value.
struct Ok {
  friend bool operator==(const Ok&, const Ok&) = default;
};

}  // namespace harpe

#define HP_CONCAT_(A, B) A##B
#define HP_CONCAT(A, B) HP_CONCAT_(A, B)
// HP_TRY(auto x, f()): x = f()'s value, or return f()'s error from the enclosing function.
#define HP_TRY(DECLARATION, ...) \
  HP_TRY_AS_(HP_CONCAT(hp_result_, __LINE__), DECLARATION, (__VA_ARGS__))
#define HP_TRY_AS_(RESULT, DECLARATION, EXPRESSION)   \
  auto RESULT = EXPRESSION;                           \
  if (!RESULT.ok()) return std::move(RESULT).error(); \
  DECLARATION = std::move(RESULT).value()
// HP_REQUIRE_OK(f()): return f()'s error, or continue.
#define HP_REQUIRE_OK(...)                                                                    \
  do {                                                                                        \
    if (auto hp_status = (__VA_ARGS__); !hp_status.ok()) return std::move(hp_status).error(); \
  } while (false)
