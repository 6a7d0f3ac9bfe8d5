// libFuzzer: arbitrary bytes from a ring or a network. The first byte selects how to read them.
#include <cstring>

#include "tests/support/wire_laws.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace laws = harpe::transport::test;
  if (size == 0) return 0;
  const std::span<const std::uint8_t> bytes(data + 1, size - 1);
  if (data[0] % 3 == 0) laws::check_descriptor(bytes);
  if (data[0] % 3 == 1) laws::check_contact(bytes);
  if (data[0] % 3 == 2 && bytes.size() >= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof(word));
    laws::check_immediate(word);
  }
  return 0;
}
