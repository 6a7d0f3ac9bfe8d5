#include "support/build.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

namespace harpe {
namespace {

constexpr std::string_view kHexadecimal = "0123456789abcdef";
constexpr std::size_t kDigits = 12;

std::size_t aligned(std::size_t size) { return (size + 3) / 4 * 4; }

// The build id among the notes of a segment, in hexadecimal; or "".
std::string find_id(std::span<const unsigned char> notes) {
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) head;
    std::memcpy(&head, notes.data(), sizeof head);
    const std::size_t name = sizeof head;
    const std::size_t content = name + aligned(head.n_namesz);
    if (content + head.n_descsz > notes.size()) return {};
    const bool gnu = head.n_namesz == 4 && std::memcmp(notes.data() + name, "GNU", 4) == 0;
    if (gnu && head.n_type == NT_GNU_BUILD_ID) {
      std::string id;
      for (const unsigned char byte : notes.subspan(content, head.n_descsz)) {
        for (const int shift : {4, 0}) id += kHexadecimal[(byte >> shift) & 0xF];
      }
      return id.substr(0, kDigits);
    }
    notes = notes.subspan(std::min(notes.size(), content + aligned(head.n_descsz)));
  }
  return {};
}

// True if this code is part of the object: the program or a shared library.
bool holds_this(const dl_phdr_info& object) {
  const auto here = reinterpret_cast<ElfW(Addr)>(&identify_build);
  return std::ranges::any_of(
      std::span(object.dlpi_phdr, object.dlpi_phnum), [&](const ElfW(Phdr) & segment) {
        const ElfW(Addr) begin = object.dlpi_addr + segment.p_vaddr;
        return segment.p_type == PT_LOAD && begin <= here && here - begin < segment.p_memsz;
      });
}

int visit(dl_phdr_info* object, std::size_t /*size*/, void* out) {
  if (!holds_this(*object)) return 0;
  for (const ElfW(Phdr) & segment : std::span(object->dlpi_phdr, object->dlpi_phnum)) {
    if (segment.p_type != PT_NOTE) continue;
    const auto* const begin =
        reinterpret_cast<const unsigned char*>(object->dlpi_addr + segment.p_vaddr);
    const std::string id = find_id({begin, segment.p_memsz});
    if (id.empty()) continue;
    *static_cast<std::string*>(out) = id;
    break;
  }
  return 1;
}

}  // namespace

std::string identify_build(std::string_view version) {
  std::string id;
  ::dl_iterate_phdr(visit, &id);
  return std::string(version) + (id.empty() ? "" : "+" + id);
}

}  // namespace harpe
