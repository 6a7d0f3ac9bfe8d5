#include "support/hash.h"

#include <gtest/gtest.h>

namespace harpe {
namespace {

// Published values of FNV-1a with 128 bits.
TEST(Hash, is_fnv_1a_of_128_bits) {
  EXPECT_EQ(hash_text(""), "6c62272e07bb014262b821756295c58d");
  EXPECT_EQ(hash_text("a"), "d228cb696f1a8caf78912b704e4a8964");
  EXPECT_EQ(hash_text("foobar"), "343e1662793c64bf6f0d3597ba446f18");
}

TEST(Hash, sees_every_byte_and_its_place) {
  EXPECT_NE(hash_text("ab"), hash_text("ba"));
  EXPECT_NE(hash_text("ab"), hash_text("ab "));
  EXPECT_NE(hash_text(std::string_view("\0", 1)), hash_text(""));
  EXPECT_NE(hash_text("\xff"), hash_text("\x7f"));
}

}  // namespace
}  // namespace harpe
