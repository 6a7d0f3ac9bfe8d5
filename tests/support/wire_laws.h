#pragma once

#include <cstdint>
#include <span>

namespace harpe::transport::test {

// What must hold of any bytes that come as a descriptor, as data of a put, or as a contact; raises
// an InternalError where it does not. The property tests and the fuzzer share it.
void check_descriptor(std::span<const std::uint8_t> bytes);  // 64 of them, or fewer
void check_immediate(std::uint64_t data);
void check_contact(std::span<const std::uint8_t> bytes);

}  // namespace harpe::transport::test
