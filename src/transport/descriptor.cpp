#include "transport/descriptor.h"

#include "support/check.h"

namespace harpe::transport {
namespace {

constexpr std::uint64_t kRegionMask = (std::uint64_t{1} << kRegionBits) - 1;

constexpr std::uint64_t field(std::uint64_t word, int at, int bits) {
  return (word >> at) & ((std::uint64_t{1} << bits) - 1);
}

std::uint64_t regions_of(const Command& command) {
  const auto part = [](const Place& place, int at) {
    HP_CHECK(place.region >= 0 && static_cast<std::uint64_t>(place.region) <= kRegionMask,
             "a region has 16 bits");
    return static_cast<std::uint64_t>(place.region) << at;
  };
  return part(command.source, 0) | part(command.destination, kRegionBits) |
         part(command.word, 2 * kRegionBits);
}

bool has_put(Operation operation) {
  return operation == Operation::Put || operation == Operation::PutSignal;
}
bool has_signal(Operation operation) {
  return operation == Operation::Signal || operation == Operation::PutSignal;
}

std::string at_place(const Place& place) {
  return std::to_string(place.offset) + " of region " + std::to_string(place.region);
}

std::optional<Malformed> outside(const std::string& what, const Place& place, std::int64_t bytes,
                                 std::span<const std::int64_t> sizes) {
  const auto region = static_cast<std::size_t>(place.region);
  if (region >= sizes.size()) {
    return Malformed{what + " at " + at_place(place) + ", and there are " +
                     std::to_string(sizes.size())};
  }
  const std::int64_t size = sizes[region];
  // No sum, which could overflow: offsets are untrusted.
  if (bytes < 0 || place.offset < 0 || bytes > size || place.offset > size - bytes) {
    return Malformed{what + " of " + std::to_string(bytes) + " bytes at " + at_place(place) +
                     ", which has " + std::to_string(size)};
  }
  return std::nullopt;
}

std::optional<Malformed> outside_word(const Place& word, std::span<const std::int64_t> sizes) {
  if (auto wrong = outside("a signal", word, sizeof(std::uint32_t), sizes)) return wrong;
  if (word.offset % 4 != 0)
    return Malformed{"a signal at " + at_place(word) + ", no multiple of 4"};
  return std::nullopt;
}

// Fields that the operation does not use must be zero, so that equal commands have equal bytes.
std::optional<Malformed> unused(const Command& command) {
  const bool is_clean =
      (has_put(command.operation) ||
       (command.source == Place{} && command.destination == Place{} && command.bytes == 0)) &&
      (has_signal(command.operation) ||
       (command.word == Place{} && command.value == 0 && command.mode == SignalMode::Set &&
        command.strength == Strength::Strong && command.follows == Follows::Nothing));
  if (is_clean) return std::nullopt;
  return Malformed{"fields that operation " + std::to_string(static_cast<int>(command.operation)) +
                   " has no use for"};
}

}  // namespace

Words encode(const Command& command) {
  Words words{};
  words[0] = static_cast<std::uint64_t>(command.operation) << kOperationAt |
             std::uint64_t{kDescriptorVersion} << kVersionAt |
             static_cast<std::uint64_t>(command.mode) << kModeAt |
             static_cast<std::uint64_t>(command.strength) << kStrengthAt |
             static_cast<std::uint64_t>(command.follows) << kFollowsAt |
             std::uint64_t{command.value} << kValueAt;
  words[1] = regions_of(command);
  words[kSourceWord] = static_cast<std::uint64_t>(command.source.offset);
  words[kDestinationWord] = static_cast<std::uint64_t>(command.destination.offset);
  words[kSignalWord] = static_cast<std::uint64_t>(command.word.offset);
  words[kBytesWord] = static_cast<std::uint64_t>(command.bytes);
  return words;
}

Result<Command, Malformed> decode(const Words& words, Reach reach) {
  const std::uint64_t operation = field(words[0], kOperationAt, kOperationBits);
  const std::uint64_t version = field(words[0], kVersionAt, kVersionBits);
  const std::uint64_t follows = field(words[0], kFollowsAt, kFollowsBits);
  if (version != kDescriptorVersion) {
    return Malformed{"version " + std::to_string(version) + ", not " +
                     std::to_string(kDescriptorVersion)};
  }
  if (operation < static_cast<std::uint64_t>(Operation::Put) ||
      operation > static_cast<std::uint64_t>(Operation::Quiet)) {
    return Malformed{"operation " + std::to_string(operation) + " is none"};
  }
  if (follows > static_cast<std::uint64_t>(Follows::Epoch)) {
    return Malformed{"what follows is " + std::to_string(follows) + ", which is nothing known"};
  }
  if (field(words[0], kZeroAt, kZeroBits) != 0 ||
      field(words[1], 3 * kRegionBits, kRegionBits) != 0 || words[6] != 0 || words[7] != 0) {
    return Malformed{"bits that are kept zero are set"};
  }
  const auto place = [&](int at, std::size_t offset) {
    return Place{.region = static_cast<std::int32_t>(field(words[1], at, kRegionBits)),
                 .offset = static_cast<std::int64_t>(words[offset])};
  };
  const Command command{.operation = static_cast<Operation>(operation),
                        .source = place(0, kSourceWord),
                        .destination = place(kRegionBits, kDestinationWord),
                        .bytes = static_cast<std::int64_t>(words[kBytesWord]),
                        .word = place(2 * kRegionBits, kSignalWord),
                        .value = static_cast<std::uint32_t>(words[0] >> kValueAt),
                        .mode = static_cast<SignalMode>(field(words[0], kModeAt, 1)),
                        .strength = static_cast<Strength>(field(words[0], kStrengthAt, 1)),
                        .follows = static_cast<Follows>(follows)};
  if (auto wrong = unused(command)) return *std::move(wrong);
  if (has_put(command.operation)) {
    if (auto wrong = outside("a source", command.source, command.bytes, reach.own)) return *wrong;
    if (auto wrong = outside("a destination", command.destination, command.bytes, reach.peer)) {
      return *std::move(wrong);
    }
  }
  if (has_signal(command.operation)) {
    if (auto wrong = outside_word(command.word, reach.peer)) return *std::move(wrong);
  }
  return command;
}

// 8 bytes, from the lowest bit: value 32, index of the word 24, region 7, mode 1. 4 bytes: index
// 26, region 6; the value is an addition of 1.
std::optional<std::uint64_t> encode_immediate(const SignalUpdate& update, int bytes) {
  const auto index = static_cast<std::uint64_t>(update.word.offset / 4);
  const auto region = static_cast<std::uint64_t>(update.word.region);
  if (bytes >= 8) {
    if (index >> 24 != 0 || region >> 7 != 0) return std::nullopt;
    return std::uint64_t{update.value} | index << 32 | region << 56 |
           static_cast<std::uint64_t>(update.mode) << 63;
  }
  if (bytes < 4 || index >> 26 != 0 || region >> 6 != 0 || update.mode != SignalMode::Add ||
      update.value != 1) {
    return std::nullopt;
  }
  return index | region << 26;
}

Result<SignalUpdate, Malformed> decode_immediate(std::uint64_t data, int bytes,
                                                 std::span<const std::int64_t> own) {
  const bool is_wide = bytes >= 8;
  if (!is_wide && data >> 32 != 0) return Malformed{"more than 4 bytes of data"};
  const auto index = static_cast<std::int64_t>(is_wide ? field(data, 32, 24) : field(data, 0, 26));
  const auto region = static_cast<std::int32_t>(is_wide ? field(data, 56, 7) : field(data, 26, 6));
  const SignalUpdate update{
      .word = {.region = region, .offset = index * 4},
      .value = is_wide ? static_cast<std::uint32_t>(data) : 1,
      .mode = is_wide ? static_cast<SignalMode>(field(data, 63, 1)) : SignalMode::Add};
  if (auto wrong = outside_word(update.word, own)) return *std::move(wrong);
  return update;
}

}  // namespace harpe::transport
