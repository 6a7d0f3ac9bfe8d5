#include "transport/descriptor.h"

#include <gtest/gtest.h>

namespace harpe::transport {
namespace {

constexpr std::array<std::int64_t, 2> kOwn = {4096, 64};
constexpr std::array<std::int64_t, 2> kPeer = {8192, 16};
constexpr Reach kReach{.own = kOwn, .peer = kPeer};

Command example() {
  return {.operation = Operation::PutSignal,
          .source = {.region = 0, .offset = 64},
          .destination = {.region = 0, .offset = 4096},
          .bytes = 4032,
          .word = {.region = 1, .offset = 12},
          .value = 0xfedcba98,
          .mode = SignalMode::Add,
          .strength = Strength::Weak,
          .follows = Follows::Epoch};
}

std::string refusal(const Command& command) {
  const auto decoded = decode(encode(command), kReach);
  return decoded.ok() ? "" : decoded.error().reason;
}

TEST(Descriptor, reads_back_what_was_written) {
  const auto decoded = decode(encode(example()), kReach);
  ASSERT_TRUE(decoded.ok()) << decoded.error().reason;
  EXPECT_EQ(*decoded, example());
}

TEST(Descriptor, is_64_bytes_and_leaves_the_phase_to_the_ring) {
  static_assert(sizeof(Words) == 64);
  Words words = encode(example());
  EXPECT_EQ(words[0] & kPhaseBit, 0U);
  words[0] |= kPhaseBit;
  EXPECT_TRUE(decode(words, kReach).ok());
}

TEST(Descriptor, refuses_memory_outside_of_a_region) {
  Command command = example();
  command.bytes = 4033;
  EXPECT_EQ(refusal(command), "a source of 4033 bytes at 64 of region 0, which has 4096");
  command = example();
  command.destination.offset = 4161;
  EXPECT_EQ(refusal(command), "a destination of 4032 bytes at 4161 of region 0, which has 8192");
  command = example();
  command.word.offset = 16;
  EXPECT_EQ(refusal(command), "a signal of 4 bytes at 16 of region 1, which has 16");
  command = example();
  command.word.region = 2;
  EXPECT_EQ(refusal(command), "a signal at 12 of region 2, and there are 2");
}

TEST(Descriptor, refuses_sums_that_overflow) {
  Command command = example();
  command.destination.offset = std::numeric_limits<std::int64_t>::max() - 8;
  EXPECT_NE(refusal(command), "");
  command = example();
  command.source.offset = -1;
  EXPECT_NE(refusal(command), "");
  command = example();
  command.bytes = std::numeric_limits<std::int64_t>::min();
  EXPECT_NE(refusal(command), "");
}

TEST(Descriptor, refuses_words_that_could_be_torn) {
  Command command = example();
  command.word.offset = 6;
  EXPECT_EQ(refusal(command), "a signal at 6 of region 1, no multiple of 4");
}

TEST(Descriptor, refuses_other_versions_and_unknown_operations) {
  Words words = encode(example());
  words[0] += std::uint64_t{1} << 8;
  EXPECT_EQ(decode(words, kReach).error().reason, "version 2, not 1");
  words = encode(example());
  words[0] |= std::uint64_t{0x7f} << 1;
  EXPECT_EQ(decode(words, kReach).error().reason, "operation 127 is none");
  words = encode(example());
  words[7] = 1;
  EXPECT_EQ(decode(words, kReach).error().reason, "bits that are kept zero are set");
}

TEST(Descriptor, of_a_fence_names_no_memory) {
  EXPECT_EQ(refusal({.operation = Operation::Fence}), "");
  EXPECT_EQ(refusal({.operation = Operation::Fence, .value = 3}),
            "fields that operation 4 has no use for");
}

TEST(Immediate, carries_any_update_in_8_bytes) {
  const SignalUpdate update{
      .word = {.region = 1, .offset = 12}, .value = 0xffffffff, .mode = SignalMode::Add};
  const auto data = encode_immediate(update, 8);
  ASSERT_TRUE(data.has_value());
  EXPECT_EQ(*decode_immediate(*data, 8, kPeer), update);
}

TEST(Immediate, carries_additions_of_1_in_4_bytes) {
  const SignalUpdate one{.word = {.region = 1, .offset = 8}, .value = 1, .mode = SignalMode::Add};
  const auto data = encode_immediate(one, 4);
  ASSERT_TRUE(data.has_value());
  EXPECT_EQ(*data >> 32, 0U);
  EXPECT_EQ(*decode_immediate(*data, 4, kPeer), one);
  EXPECT_FALSE(encode_immediate({.word = {}, .value = 2, .mode = SignalMode::Add}, 4));
  EXPECT_FALSE(encode_immediate({.word = {}, .value = 1, .mode = SignalMode::Set}, 4));
}

TEST(Immediate, refuses_signals_outside_of_what_is_registered) {
  const SignalUpdate update{.word = {.region = 1, .offset = 16}, .value = 1};
  const auto data = encode_immediate(update, 8);
  ASSERT_TRUE(data.has_value());
  EXPECT_EQ(decode_immediate(*data, 8, kPeer).error().reason,
            "a signal of 4 bytes at 16 of region 1, which has 16");
}

}  // namespace
}  // namespace harpe::transport
