#include "tests/support/wire_laws.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "transport/exchange.h"

namespace harpe::transport::test {
namespace {

constexpr std::array<std::int64_t, 3> kOwn = {4096, 0, 1 << 20};
constexpr std::array<std::int64_t, 2> kPeer = {65'536, 60};

bool lies_within(const Place& place, std::int64_t bytes, std::span<const std::int64_t> sizes) {
  if (place.region < 0 || static_cast<std::size_t>(place.region) >= sizes.size()) return false;
  const std::int64_t size = sizes[static_cast<std::size_t>(place.region)];
  return bytes >= 0 && place.offset >= 0 && place.offset <= size && bytes <= size - place.offset;
}

}  // namespace

void check_descriptor(std::span<const std::uint8_t> bytes) {
  Words words{};
  std::memcpy(words.data(), bytes.data(), std::min(bytes.size(), sizeof(words)));
  const auto command = decode(words, {.own = kOwn, .peer = kPeer});
  if (!command.ok()) {
    HP_CHECK(!command.error().reason.empty(), "a refusal has a reason");
    return;
  }
  Words clean = words;
  clean[0] &= ~kPhaseBit;
  HP_CHECK(encode(*command) == clean, "one command has one descriptor");
  const Operation operation = command->operation;
  if (operation == Operation::Put || operation == Operation::PutSignal) {
    HP_CHECK(lies_within(command->source, command->bytes, kOwn), "a source is registered");
    HP_CHECK(lies_within(command->destination, command->bytes, kPeer),
             "a destination is registered");
  }
  if (operation == Operation::Signal || operation == Operation::PutSignal) {
    HP_CHECK(lies_within(command->word, 4, kPeer) && command->word.offset % 4 == 0,
             "a word is registered and whole");
  }
}

void check_immediate(std::uint64_t data) {
  for (const int bytes : {4, 8}) {
    const auto update = decode_immediate(data, bytes, kPeer);
    if (!update.ok()) continue;
    HP_CHECK(lies_within(update->word, 4, kPeer) && update->word.offset % 4 == 0,
             "a word is registered and whole");
    HP_CHECK(encode_immediate(*update, bytes) == data, "one update has one form");
  }
}

void check_contact(std::span<const std::uint8_t> bytes) {
  const auto contact = parse_contact(std::as_bytes(bytes));
  if (!contact) return;
  const Blob printed = print(*contact);
  HP_CHECK(std::ranges::equal(printed, std::as_bytes(bytes)), "a contact reads back");
  for (const std::int64_t size : contact->sizes) HP_CHECK(size >= 0, "a size is none below zero");
}

}  // namespace harpe::transport::test
