#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>

#include "tests/support/wire_laws.h"
#include "transport/descriptor.h"
#include "transport/exchange.h"

namespace harpe::transport {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes draw_bytes(std::mt19937_64& draw, std::size_t count) {
  Bytes bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(draw());
  return bytes;
}

// A command near the limits of the registered memory; most are refused, for one reason each.
Command draw_command(std::mt19937_64& draw) {
  constexpr std::array<std::int64_t, 8> kOffsets = {0, 4, 56, 60, 64, 4092, 4096, -4};
  constexpr std::array<std::int64_t, 6> kSizes = {0, 1, 4, 4096, 65'536, -1};
  const auto place = [&] {
    return Place{.region = static_cast<std::int32_t>(draw() % 3),
                 .offset = kOffsets[draw() % kOffsets.size()]};
  };
  Command command{.operation = static_cast<Operation>(1 + draw() % 5)};
  if (command.operation <= Operation::PutSignal) {
    command.source = place();
    command.destination = place();
    command.bytes = kSizes[draw() % kSizes.size()];
  }
  if (command.operation == Operation::PutSignal || command.operation == Operation::Signal) {
    command.word = place();
    command.value = static_cast<std::uint32_t>(draw());
    command.mode = static_cast<SignalMode>(draw() % 2);
    command.strength = static_cast<Strength>(draw() % 2);
    command.follows = static_cast<Follows>(draw() % 3);
  }
  return command;
}

TEST(Wire, decodes_any_64_bytes_to_registered_memory_or_refuses_them) {
  std::mt19937_64 draw(20261122);
  for (int count = 0; count < 200'000; ++count) test::check_descriptor(draw_bytes(draw, 64));
}

TEST(Wire, decodes_damaged_descriptors_to_registered_memory_or_refuses_them) {
  std::mt19937_64 draw(7);
  for (int count = 0; count < 400'000; ++count) {
    const Words words = encode(draw_command(draw));
    Bytes bytes(sizeof(words));
    std::memcpy(bytes.data(), words.data(), sizeof(words));
    test::check_descriptor(bytes);
    bytes[draw() % bytes.size()] ^= static_cast<std::uint8_t>(1U << draw() % 8);
    test::check_descriptor(bytes);
  }
}

TEST(Wire, applies_data_of_puts_to_registered_signals_or_refuses_it) {
  std::mt19937_64 draw(11);
  for (int count = 0; count < 400'000; ++count) {
    const std::uint64_t data = draw();
    test::check_immediate(data);
    test::check_immediate(data & 0xffffffff);
    test::check_immediate(data & 0x8100'000f'ffff'ffffULL);
  }
}

TEST(Wire, reads_contacts_or_refuses_them) {
  std::mt19937_64 draw(13);
  for (int count = 0; count < 100'000; ++count) {
    const Contact contact{
        .sizes = std::vector<std::int64_t>(draw() % 4, static_cast<std::int64_t>(draw() >> 1)),
        .address = Blob(draw() % 20, std::byte{5})};
    const Blob blob = print(contact);
    Bytes bytes(blob.size());
    std::memcpy(bytes.data(), blob.data(), blob.size());
    test::check_contact(bytes);
    bytes[draw() % bytes.size()] ^= static_cast<std::uint8_t>(1U << draw() % 8);
    test::check_contact(bytes);
    bytes.resize(draw() % bytes.size());
    test::check_contact(bytes);
  }
}

}  // namespace
}  // namespace harpe::transport
