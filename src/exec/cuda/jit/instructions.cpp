#include "exec/cuda/jit/instructions.h"

#include <elf.h>

#include <cstring>
#include <optional>
#include <string>

#include "exec/cuda/jit/kernel_variant.h"

namespace harpe::cuda {
namespace {

// An instruction of sm_90 has 16 bytes, little endian. Its lowest 9 bits are the operation, the
// next 3 the kinds of its operands. NVIDIA documents neither; tests/unit/nvrtc/nvrtc_test.cpp
// checks the values with kernels whose instructions are known.
constexpr std::size_t kInstructionBytes = 16;
constexpr std::uint32_t kOperationMask = 0x1ff;
constexpr std::uint32_t kHgmma = 0x1f0;
constexpr std::uint32_t kLdl = 0x183;
constexpr std::uint32_t kStl = 0x187;
constexpr std::uint32_t kMoveToUniform = 0x0ca;  // R2UR
constexpr std::uint32_t kGroup = 0x1c5;          // WARPGROUP: begins or awaits a group

// The value at an offset of a file, if the file is long enough.
template <class Value>
std::optional<Value> value_at(std::string_view file, std::uint64_t offset) {
  if (offset > file.size() || file.size() - offset < sizeof(Value)) return std::nullopt;
  Value value;
  std::memcpy(&value, file.data() + offset, sizeof(Value));
  return value;
}

std::optional<std::string_view> bytes_of(std::string_view file, const Elf64_Shdr& section) {
  if (section.sh_offset > file.size() || file.size() - section.sh_offset < section.sh_size) {
    return std::nullopt;
  }
  return file.substr(section.sh_offset, section.sh_size);
}

// The first section whose name begins with `name`, in a 64-bit ELF file.
std::optional<std::string_view> find_section(std::string_view file, std::string_view name) {
  const auto head = value_at<Elf64_Ehdr>(file, 0);
  if (!head || std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
      head->e_shentsize != sizeof(Elf64_Shdr)) {
    return std::nullopt;
  }
  const auto section_at = [&](std::uint64_t index) {
    return value_at<Elf64_Shdr>(file, head->e_shoff + index * sizeof(Elf64_Shdr));
  };
  const auto of_names = section_at(head->e_shstrndx);
  const auto names = of_names ? bytes_of(file, *of_names) : std::nullopt;
  if (!names) return std::nullopt;
  for (std::uint64_t index = 0; index < head->e_shnum; ++index) {
    const auto section = section_at(index);
    if (!section || section->sh_name >= names->size()) return std::nullopt;
    if (names->substr(section->sh_name).starts_with(name)) return bytes_of(file, *section);
  }
  return std::nullopt;
}

// Counts moves to uniform registers between two wgmmas of a group. Up to two do not count: a wgmma
// needs them for the addresses of its two descriptors.
class MoveCounter {
 public:
  void see(std::uint32_t operation) {
    constexpr std::int64_t kFew = 2;
    if (operation == kGroup) is_inside_ = false;
    if (operation == kMoveToUniform) ++since_;
    if (operation != kHgmma) return;
    if (is_inside_ && since_ > kFew) all_ += since_;
    is_inside_ = true;
    since_ = 0;
  }
  [[nodiscard]] std::int64_t all() const { return all_; }

 private:
  bool is_inside_ = false;  // behind a wgmma of a group
  std::int64_t since_ = 0;
  std::int64_t all_ = 0;
};

}  // namespace

Checked<InstructionCounts> count_instructions(std::string_view name, std::string_view cubin) {
  const auto code = find_section(cubin, std::string(".text.") + kEntryPrefix);
  if (!code) {
    return make_diag(DiagCode::G036, {{"what", "the machine code"}, {"name", name}});
  }
  InstructionCounts counts;
  MoveCounter moves;
  for (std::size_t at = 0; at + kInstructionBytes <= code->size(); at += kInstructionBytes) {
    const std::uint32_t operation = *value_at<std::uint32_t>(*code, at) & kOperationMask;
    ++counts.all;
    if (operation == kHgmma) ++counts.matrix;
    if (operation == kLdl || operation == kStl) ++counts.local;
    moves.see(operation);
  }
  counts.moves = moves.all();
  return counts;
}

}  // namespace harpe::cuda
