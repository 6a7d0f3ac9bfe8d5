#include "exec/cuda/jit/kernel_cache.h"

#include <array>
#include <charconv>
#include <filesystem>

#include "support/hash.h"
#include "support/whole_file.h"

namespace harpe::cuda {
namespace {

constexpr std::string_view kMagic = "harpe kernel 1";

// The text under the checksum: two lengths, the time, and the texts.
std::string print_body(const CompiledKernel& kernel) {
  std::array<char, 32> seconds{};
  const auto end =
      std::to_chars(seconds.data(), seconds.data() + seconds.size(), kernel.seconds).ptr;
  return "seconds " + std::string(seconds.data(), end) + "\nlog " +
         std::to_string(kernel.log.size()) + "\ncubin " + std::to_string(kernel.cubin.size()) +
         "\n" + kernel.log + kernel.cubin;
}

// Removes "WORD VALUE\n" from the front of a text and returns VALUE; nullopt for any other text.
std::optional<std::string_view> take_line(std::string_view& text, std::string_view word) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos || !text.starts_with(word) || text[word.size()] != ' ') {
    return std::nullopt;
  }
  const std::string_view value = text.substr(word.size() + 1, end - word.size() - 1);
  text.remove_prefix(end + 1);
  return value;
}

template <class Number>
std::optional<Number> take_number(std::string_view& text, std::string_view word) {
  const std::optional<std::string_view> value = take_line(text, word);
  if (!value) return std::nullopt;
  Number number{};
  const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
  if (error != std::errc() || end != value->data() + value->size()) return std::nullopt;
  return number;
}

std::optional<CompiledKernel> parse_body(std::string_view body) {
  const auto seconds = take_number<double>(body, "seconds");
  const auto log = take_number<std::size_t>(body, "log");
  const auto cubin = take_number<std::size_t>(body, "cubin");
  if (!seconds || !log || !cubin || *log > body.size() || body.size() - *log != *cubin) {
    return std::nullopt;
  }
  return CompiledKernel{.cubin = std::string(body.substr(*log)),
                        .log = std::string(body.substr(0, *log)),
                        .seconds = *seconds};
}

std::string entry_name(std::string_view name, std::string_view key) {
  return std::string(name) + "-" + std::string(key) + ".kernel";
}

// The valid entry for the key, if any. Problems of an invalid entry are added to `problems`.
std::optional<CompiledKernel> find_kernel(const std::string& path, std::string_view key,
                                          std::vector<Diag>& problems) {
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) return std::nullopt;
  const Checked<std::string> text = read_whole(path);
  if (!text.ok()) {
    problems.push_back(text.error());
    return std::nullopt;
  }
  Checked<CompiledKernel> kernel = parse_kernel_entry(*text, key, path);
  if (kernel.ok()) return std::move(kernel).value();
  problems.push_back(kernel.error());
  return std::nullopt;
}

}  // namespace

std::string kernel_key(const KernelSource& source, std::span<const std::string> options,
                       std::string_view compiler_version) {
  std::string text = std::string(kMagic) + "\nnvrtc " + std::string(compiler_version) + "\n";
  for (const std::string& option : options) text += option + "\n";
  return hash_text(text + print(source));
}

std::string print_kernel_entry(const CompiledKernel& kernel, std::string_view key) {
  const std::string body = print_body(kernel);
  return std::string(kMagic) + "\nkey " + std::string(key) + "\nchecksum " + hash_text(body) +
         "\n" + body;
}

Checked<CompiledKernel> parse_kernel_entry(std::string_view text, std::string_view key,
                                           const std::string& path) {
  const auto damaged = [&](std::string_view reason) {
    return make_diag(DiagCode::G011, {{"path", path}, {"reason", reason}});
  };
  const std::string head = std::string(kMagic) + "\n";
  if (!text.starts_with(head)) return damaged("it does not begin with `harpe kernel 1`");
  text.remove_prefix(head.size());
  if (take_line(text, "key") != key) return damaged("it is of another key");
  const std::optional<std::string_view> checksum = take_line(text, "checksum");
  if (checksum != hash_text(text)) return damaged("its checksum is not that of its content");
  std::optional<CompiledKernel> kernel = parse_body(text);
  if (!kernel) return damaged("its lengths are not those of its content");
  return std::move(kernel).value();
}

std::string_view print(CacheUse use) {
  switch (use) {
    case CacheUse::Off:
      return "off";
    case CacheUse::Hit:
      return "hit";
    case CacheUse::Stored:
      return "stored";
    case CacheUse::Replaced:
      return "replaced";
    case CacheUse::NotKept:
      return "not kept";
  }
  return "";
}

Checked<CachedKernel> get_kernel(const std::optional<std::string>& folder, std::string_view name,
                                 std::string_view key,
                                 const std::function<Checked<CompiledKernel>()>& compile) {
  CachedKernel result;
  if (!folder) {
    HP_TRY(result.kernel, compile());
    return result;
  }
  const std::string file = entry_name(name, key);
  if (auto kept = find_kernel(*folder + "/" + file, key, result.problems)) {
    result.kernel = *std::move(kept);
    result.use = CacheUse::Hit;
    return result;
  }
  result.use = result.problems.empty() ? CacheUse::Stored : CacheUse::Replaced;
  HP_TRY(result.kernel, compile());
  const Checked<Ok> stored = write_whole(*folder, file, print_kernel_entry(result.kernel, key));
  if (!stored.ok()) {
    result.use = CacheUse::NotKept;
    result.problems.push_back(stored.error());
  }
  return result;
}

Checked<CachedKernel> compile_variant(const Nvrtc& compiler,
                                      const std::optional<std::string>& cache,
                                      const KernelVariant& variant,
                                      std::span<const HeaderText> headers,
                                      const CompileNotice& notice) {
  HP_TRY(const KernelSource source, assemble(variant, headers));
  std::vector<std::string> options = compile_options();
  options.push_back("-Dharpe_kernel=" + entry_point(variant.name));
  return get_kernel(cache, variant.name, kernel_key(source, options, compiler.version()), [&] {
    if (notice) notice(variant.name);
    return compiler.compile(source, options);
  });
}

}  // namespace harpe::cuda
