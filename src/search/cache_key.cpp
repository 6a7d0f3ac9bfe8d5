#include <algorithm>
#include <cmath>

#include "ir/text.h"
#include "search/cache.h"
#include "support/hash.h"

namespace harpe {
namespace {

std::string dtype_of(const Program& program) {
  for (const Decl& decl : program.decls) {
    const auto* const buffer = std::get_if<Buffer>(&decl);
    if (buffer != nullptr && buffer->role == Role::In) return std::string(print(buffer->dtype));
  }
  return "";
}

// The text of `place` lines.
std::string print_places(const std::vector<Place>& places) {
  if (places.empty()) return {};
  const std::string text = print(NormalForm{.name = "x",
                                            .program = "x",
                                            .mesh = "x",
                                            .refines = {},
                                            .splits = {},
                                            .layouts = {},
                                            .places = places,
                                            .nests = {},
                                            .fuses = {}});
  std::string out;
  for (std::size_t at = text.find("place "); at != std::string::npos;
       at = text.find("place ", at + 1)) {
    out += (out.empty() ? "" : "; ") + text.substr(at, text.find('\n', at) - at);
  }
  return out;
}

std::string family_text(const CacheKey& key) {
  std::string text = key.program + "\n" + key.program_hash + "\n" + key.dtype + "\n" +
                     std::string(print(key.contract)) + "\n" + std::string(print(key.numerics)) +
                     "\n" + key.mesh + "\n" + key.machine_hash + "\n" + key.fixed + "\n" +
                     key.version + "\n";
  if (key.memory_limit) text += std::to_string(*key.memory_limit);
  text += "\n";
  if (key.cuts) text += std::to_string(*key.cuts);
  if (key.layout) text += "\n" + std::string(print(*key.layout));
  for (const auto& [axis, size] : key.sizes) text += "\n" + axis;
  return text;
}

}  // namespace

std::string_view print(Contract contract) {
  return contract == Contract::Standard ? "standard" : "free";
}

CacheKey make_cache_key(const Program& program, const Mesh& mesh, const Machine& machine,
                        const SearchOptions& options, std::string_view version) {
  CacheKey key{.program = program.name,
               .program_hash = "",
               .sizes = {},
               .dtype = dtype_of(program),
               .contract = options.contract,
               .numerics = options.numerics,
               .mesh = "",
               .machine = machine.name,
               .machine_hash = fingerprint(machine),
               .memory_limit = options.memory_limit,
               .cuts = options.cuts,
               .fixed = print_places(options.constraints.homes),
               .layout = options.constraints.layout,
               .version = std::string(version)};
  Program sizeless = program;
  for (Decl& decl : sizeless.decls) {
    auto* const axis = std::get_if<Axis>(&decl);
    if (axis == nullptr) continue;
    key.sizes.emplace_back(axis->name, size_of(*axis));
    axis->size = Poly{.first = std::int64_t{1}, .rest = {}};
  }
  key.program_hash = hash_text(print(sizeless));
  for (const MeshAxis& axis : mesh.axes) {
    key.mesh += (key.mesh.empty() ? "" : ",") + axis.name + "=" + std::to_string(axis.size);
  }
  return key;
}

std::string family_hash(const CacheKey& key) { return hash_text(family_text(key)); }

std::string key_hash(const CacheKey& key) {
  std::string text = family_text(key);
  for (const auto& [axis, size] : key.sizes) text += "\n" + std::to_string(size);
  return hash_text(text);
}

std::string entry_name(const CacheKey& key) {
  constexpr std::size_t kDigits = 16;
  return key.program + "-" + family_hash(key).substr(0, kDigits) + "-" +
         key_hash(key).substr(0, kDigits) + ".entry";
}

double distance(const CacheKey& one, const CacheKey& other) {
  double sum = 0;
  for (std::size_t i = 0; i < std::min(one.sizes.size(), other.sizes.size()); ++i) {
    const auto a = static_cast<double>(std::max<std::int64_t>(1, one.sizes[i].second));
    const auto b = static_cast<double>(std::max<std::int64_t>(1, other.sizes[i].second));
    sum += std::abs(std::log2(a / b));
  }
  return sum;
}

}  // namespace harpe
