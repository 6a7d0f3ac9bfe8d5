#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "support/result.h"

namespace harpe {

// Every diagnostic that Harpe reports, by code. Families: T text, P program, M mesh and machine,
// S schedule primitive, F normal form, V verifier finding, I files and tensors, U usage, X fault,
// G graphics processors, N transports between ranks (networks).
enum class DiagCode : std::uint16_t {
#define HP_DIAG(CODE, VERDICT, MESSAGE, MEANING, REMEDY) CODE,
#include "support/diagnostics/all.def"
#undef HP_DIAG
};

enum class Verdict : std::uint8_t {
  Illegal,      // wrong under any implementation
  Unproven,     // may be right; the note says what was tried
  Unsupported,  // right, but not implemented
};

// The registered text of one code, as `harpe explain` and docs/errors.md show it.
struct DiagInfo {
  DiagCode code;
  std::string_view name;  // "S102"
  Verdict verdict;
  std::string_view message;  // template; `{name}` is replaced by the argument of that name
  std::string_view meaning;
  std::string_view remedy;
};

struct DiagArg {
  std::string_view name;  // a literal: the name of its placeholder
  std::variant<std::int64_t, double, std::string> value;

  DiagArg(std::string_view n, std::string v) : name(n), value(std::move(v)) {}
  DiagArg(std::string_view n, std::string_view v) : name(n), value(std::string(v)) {}
  DiagArg(std::string_view n, const char* v) : name(n), value(std::string(v)) {}
  DiagArg(std::string_view n, double v) : name(n), value(v) {}
  template <class Integer>
    requires std::is_integral_v<Integer>
  DiagArg(std::string_view n, Integer v) : name(n), value(static_cast<std::int64_t>(v)) {}

  friend bool operator==(const DiagArg&, const DiagArg&) = default;
};

// A position in a text: 1-based line and column, with the file's name if there is one.
struct SourcePosition {
  std::string file;
  std::int64_t line = 0;
  std::int64_t column = 0;
  friend bool operator==(const SourcePosition&, const SourcePosition&) = default;
};

// A refusal or finding: a code and typed arguments. It is rendered only when it is shown.
struct [[nodiscard]] Diag {
  DiagCode code;
  std::vector<DiagArg> args;
  std::vector<std::string> notes;  // context added by callers: "in step 3 of schedule `ring`"
  std::optional<SourcePosition> where;

  friend bool operator==(const Diag&, const Diag&) = default;
};

template <class T>
using Checked = Result<T, Diag>;

[[nodiscard]] Diag make_diag(DiagCode code, std::initializer_list<DiagArg> args = {});
[[nodiscard]] Diag with_note(Diag diag, std::string note);

[[nodiscard]] std::span<const DiagInfo> all_diags();
[[nodiscard]] const DiagInfo& info(DiagCode code);
[[nodiscard]] std::optional<DiagCode> find_diag(std::string_view name);

// "error[S102]: file:3:7: message; remedy" and one "  note: …" line per note. The severity of what
// is skipped rather than refused is "warning".
[[nodiscard]] std::string render(const Diag& diag, std::string_view severity = "error");
// The message alone, placeholders filled.
[[nodiscard]] std::string render_message(const Diag& diag);
// The remedy, placeholders filled; "" if none is registered.
[[nodiscard]] std::string render_remedy(const Diag& diag);

// The one candidate that `name` begins, or the nearest by edit distance, if any; case-insensitive.
[[nodiscard]] std::optional<std::string> nearest(std::string_view name,
                                                 std::span<const std::string> candidates);
// " (did you mean `ring`?)" or "": for `{hint}` placeholders of unknown-name diagnostics.
[[nodiscard]] std::string suggestion(std::string_view name,
                                     std::span<const std::string> candidates);

}  // namespace harpe
