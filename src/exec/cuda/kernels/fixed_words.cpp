#include "exec/cuda/kernels/fixed_words.h"

#include <algorithm>
#include <cstring>

namespace harpe::cuda {

void FixedWords::add_table(std::span<const std::byte> table) {
  const std::size_t before = words.size();
  words.resize(before + table.size() / sizeof(DeviceAddress));
  if (words.size() == before) return;
  std::memcpy(&words[before], table.data(), (words.size() - before) * sizeof(DeviceAddress));
}

bool FixedWords::fix(const AddressRange& memory) const {
  const auto is_there = [&](DeviceAddress word) { return memory.holds(word); };
  const auto leaves = [&](const AddressRange& operands) {
    return operands.meets(memory) && (operands.begin < memory.begin || operands.end > memory.end);
  };
  return std::ranges::any_of(words, is_there) || std::ranges::any_of(distances, leaves);
}

}  // namespace harpe::cuda
