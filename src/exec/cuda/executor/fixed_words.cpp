#include "exec/cuda/executor/fixed_words.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "exec/cuda/kernels/gemm/prepared_gemm.h"

namespace harpe::cuda {
namespace {

using Words = std::vector<DeviceAddress>;

void add_table(std::span<const std::byte> table, Words& words) {
  const std::size_t before = words.size();
  words.resize(before + table.size() / sizeof(DeviceAddress));
  if (words.size() == before) return;
  std::memcpy(&words[before], table.data(), (words.size() - before) * sizeof(DeviceAddress));
}

void add_panels(const GemmSpec& spec, Words& words) {
  for (const GemmPanelSpec& panel : spec.panels) {
    words.push_back(panel.c);
    for (const GemmPieceSpec& piece : panel.pieces) words.push_back(piece.a);
    for (const GemmAddendSpec& addend : panel.addends) words.push_back(addend.address);
  }
}

// Of groups in one array of B.
AddressRange range_of_groups(const GemmSpec& spec) {
  const std::int64_t bytes = spec.b_rows * spec.b_stride * device::bytes_of(spec.in);
  return {.begin = spec.b, .end = spec.b + static_cast<DeviceAddress>(bytes)};
}

void add_from(const GemmSpec& spec, FixedWords& fixed) {
  add_table(std::as_bytes(std::span(spec.copies)), fixed.words);
  const bool by_library = spec.engine == LeafEngine::Library;
  if (by_library) fixed.words.push_back(spec.b);
  if (by_library || !fit_in_arguments(spec)) add_panels(spec, fixed.words);
  if (spec.b_rows > 0) fixed.distances.push_back(range_of_groups(spec));
}

void add_from(const AttentionSpec& spec, FixedWords& fixed) {
  add_table(std::as_bytes(std::span(spec.copies)), fixed.words);
  if (spec.engine != LeafEngine::Library) return;
  for (const AttentionPanelSpec& panel : spec.panels) {
    fixed.words.insert(fixed.words.end(),
                       {panel.queries.address, panel.output.address, panel.lse.address,
                        panel.carried_output.address, panel.carried_lse});
  }
  for (const AttentionChunkSpec& chunk : spec.chunks) {
    fixed.words.insert(fixed.words.end(), {chunk.keys.address, chunk.values.address});
  }
}

}  // namespace

void FixedWords::add(const LaunchSpec& spec) {
  if (const auto* const product = std::get_if<GemmSpec>(&spec)) add_from(*product, *this);
  if (const auto* const heads = std::get_if<AttentionSpec>(&spec)) add_from(*heads, *this);
  if (const auto* const plain = std::get_if<PlainLaunch>(&spec)) add_table(plain->table, words);
}

bool FixedWords::fix(const AddressRange& memory) const {
  const auto is_there = [&](DeviceAddress word) { return memory.holds(word); };
  const auto leaves = [&](const AddressRange& operands) {
    const bool meets = operands.begin < memory.end && memory.begin < operands.end;
    return meets && (operands.begin < memory.begin || operands.end > memory.end);
  };
  return std::ranges::any_of(words, is_there) || std::ranges::any_of(distances, leaves);
}

}  // namespace harpe::cuda
