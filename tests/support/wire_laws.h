#pragma once

#include <cstdint>
#include <span>

namespace harpe::transport::test {

// Laws for arbitrary bytes read as a descriptor, as data of a put, or as a contact; a violation
// raises InternalError. The property tests and the fuzzer share them.
void check_descriptor(std::span<const std::uint8_t> bytes);  // 64 of them, or fewer
void check_immediate(std::uint64_t data);
void check_contact(std::span<const std::uint8_t> bytes);

}  // namespace harpe::transport::test
