#include "support/diag.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>

#include "support/option_words.h"
#include "support/printable.h"

namespace harpe {
namespace {

constexpr std::array kDiags = {
#define HP_DIAG(CODE, VERDICT, MESSAGE, MEANING, REMEDY) \
  DiagInfo{DiagCode::CODE, #CODE, Verdict::VERDICT, MESSAGE, MEANING, REMEDY},
#include "support/diagnostics/all.def"
#undef HP_DIAG
};

// `text` with each placeholder `{name}` replaced by write(name).
template <class Write>
std::string fill(std::string_view text, const Write& write) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '{') {
      out += text[i];
      continue;
    }
    const std::size_t close = text.find('}', i);
    out += write(text.substr(i + 1, close - i - 1));
    i = close;
  }
  return out;
}

constexpr std::string_view kOption = "option:";

// The text for the placeholder `option:NAME=VALUE`; none if the placeholder is an argument's.
std::optional<std::string> write_option(std::string_view placeholder, OptionWords words) {
  if (!placeholder.starts_with(kOption)) return std::nullopt;
  placeholder.remove_prefix(kOption.size());
  const std::size_t equals = std::min(placeholder.find('='), placeholder.size());
  return words(placeholder.substr(0, equals),
               placeholder.substr(std::min(equals + 1, placeholder.size())));
}

// Arguments may come from users and files.
std::string text_of(const DiagArg& arg) {
  if (const auto* integer = std::get_if<std::int64_t>(&arg.value)) return std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&arg.value)) {
    std::array<char, 32> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), *real).ptr;
    return {buffer.data(), end};
  }
  return abridge(std::get<std::string>(arg.value));
}

// A note may have several lines, such as a compiler's log; lines after the first are indented.
std::string text_of(std::string_view note) {
  while (note.ends_with('\n')) note.remove_suffix(1);
  std::string out;
  while (true) {
    const std::size_t end = note.find('\n');
    out += abridge(note.substr(0, end));
    if (end == std::string_view::npos) return out;
    out += "\n    ";
    note.remove_prefix(end + 1);
  }
}

// `text` with all placeholders filled.
std::string fill(std::string_view text, const Diag& diag, OptionWords words) {
  return fill(text, [&](std::string_view name) {
    if (std::optional<std::string> option = write_option(name, words)) return *std::move(option);
    for (const DiagArg& arg : diag.args) {
      if (arg.name == name) return text_of(arg);
      if (!arg.name.starts_with(kOption) || arg.name.substr(kOption.size()) != name) continue;
      return fill_options(std::get<std::string>(arg.value), words);
    }
    HP_CHECK(false,
             std::string(info(diag.code).name) + " lacks argument `" + std::string(name) + "`");
  });
}

constexpr std::size_t kShortestBeginning = 3;

std::string to_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

Diag make_diag(DiagCode code, std::initializer_list<DiagArg> args) {
  return Diag{.code = code, .args = args, .notes = {}, .where = std::nullopt};
}

Diag with_note(Diag diag, std::string note) {
  diag.notes.push_back(std::move(note));
  return diag;
}

std::span<const DiagInfo> all_diags() { return kDiags; }

const DiagInfo& info(DiagCode code) { return kDiags[static_cast<std::size_t>(code)]; }

std::optional<DiagCode> find_diag(std::string_view name) {
  const auto found = std::ranges::find(kDiags, name, &DiagInfo::name);
  if (found == kDiags.end()) return std::nullopt;
  return found->code;
}

std::string print_option(std::string_view name, std::string_view value) {
  return std::string(name) + (value.empty() ? "" : "=") + std::string(value);
}

std::string fill_options(std::string_view text, OptionWords words) {
  return fill(text, [&](std::string_view name) {
    return write_option(name, words).value_or("{" + std::string(name) + "}");
  });
}

std::string render_message(const Diag& diag, OptionWords words) {
  return fill(info(diag.code).message, diag, words);
}

std::string render_message(const Diag& diag) { return render_message(diag, print_option); }

std::string render_remedy(const Diag& diag) {
  return fill(info(diag.code).remedy, diag, print_option);
}

std::string render(const Diag& diag, std::string_view severity, OptionWords words) {
  std::string out = std::string(severity) + "[" + std::string(info(diag.code).name) + "]: ";
  if (diag.where) {
    if (!diag.where->file.empty()) out += abridge(diag.where->file) + ":";
    out += std::to_string(diag.where->line) + ":" + std::to_string(diag.where->column) + ": ";
  }
  out += render_message(diag, words);
  const std::string remedy = fill(info(diag.code).remedy, diag, words);
  if (!remedy.empty()) out += "; " + remedy;
  for (const std::string& note : diag.notes) out += "\n  note: " + text_of(note);
  return out;
}

std::string render(const Diag& diag, std::string_view severity) {
  return render(diag, severity, print_option);
}

std::optional<std::string> nearest(std::string_view given,
                                   std::span<const std::string> candidates) {
  const std::string name = to_lower(given);
  const auto begins = [&](const std::string& candidate) {
    return name.size() >= kShortestBeginning && to_lower(candidate).starts_with(name);
  };
  const auto begun = std::ranges::find_if(candidates, begins);
  if (begun != candidates.end() && std::ranges::count_if(candidates, begins) == 1) return *begun;
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(name, to_lower(candidate));
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string suggestion(std::string_view name, std::span<const std::string> candidates) {
  const std::optional<std::string> best = nearest(name, candidates);
  return best ? " (did you mean `" + *best + "`?)" : std::string();
}

}  // namespace harpe
