#include "exec/cuda/jit/kernel_source.h"

#include <algorithm>
#include <optional>

#include "exec/cuda/jit/device_texts.h"

namespace harpe::cuda {
namespace {

std::string_view skip_blanks(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(" \t"), text.size()));
}

// The name in quotes if the line is `#include "name"`.
std::optional<std::string_view> included_by(std::string_view line) {
  constexpr std::string_view kInclude = "include";
  line = skip_blanks(line);
  if (!line.starts_with('#')) return std::nullopt;
  line = skip_blanks(line.substr(1));
  if (!line.starts_with(kInclude)) return std::nullopt;
  line = skip_blanks(line.substr(kInclude.size()));
  if (!line.starts_with('"')) return std::nullopt;
  return line.substr(1, line.find('"', 1) - 1);
}

// Depth first, each header once. Ignores preprocessor conditions: headers under a false one are
// included too, which at worst costs an extra compilation.
Checked<Ok> add_included(std::string_view name, std::string_view text,
                         std::span<const HeaderText> known, std::vector<HeaderText>& found) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::optional<std::string_view> included = included_by(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!included) continue;
    const auto header = std::ranges::find(known, *included, &HeaderText::name);
    if (header == known.end()) {
      return make_diag(DiagCode::G010, {{"name", name}, {"included", *included}});
    }
    if (std::ranges::find(found, *included, &HeaderText::name) != found.end()) continue;
    found.push_back(*header);
    HP_REQUIRE_OK(add_included(header->name, header->text, known, found));
  }
  return Ok{};
}

}  // namespace

std::span<const HeaderText> device_headers() { return device_text::all; }

Checked<KernelSource> assemble(const KernelVariant& variant, std::span<const HeaderText> headers) {
  KernelSource source{.name = variant.name, .text = variant.source, .headers = {}};
  HP_REQUIRE_OK(add_included(source.name, source.text, headers, source.headers));
  return source;
}

std::string print(const KernelSource& source) {
  std::string out;
  const auto add = [&](std::string_view name, std::string_view text) {
    out += std::string(name) + " " + std::to_string(text.size()) + "\n" + std::string(text) + "\n";
  };
  add(source.name, source.text);
  for (const HeaderText& header : source.headers) add(header.name, header.text);
  return out;
}

}  // namespace harpe::cuda
