#include "io/json.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace harpe {
namespace {

TEST(Json, keeps_the_order_of_members) {
  const Json json = {{"b", 1}, {"a", {1, 2}}};
  EXPECT_EQ(print_json(json), "{\n  \"b\": 1,\n  \"a\": [\n    1,\n    2\n  ]\n}");
  EXPECT_EQ(print_json_line(json), R"({"b":1,"a":[1,2]})");
}

TEST(Json, prints_numbers_that_read_back) {
  EXPECT_EQ(print_json_line(Json({0.1, 12.0, 1e-7, -3})), "[0.1,12.0,1e-07,-3]");
  EXPECT_EQ(print_json(Json(std::numeric_limits<double>::infinity())), "null");
  EXPECT_EQ(print_json(Json(std::numeric_limits<double>::quiet_NaN())), "null");
}

// File names may hold any bytes.
TEST(Json, replaces_bytes_that_are_no_text) {
  EXPECT_EQ(print_json(Json("a\xff\xc3"
                            "b \u00e9")),
            "\"a\uFFFD\uFFFDb \u00e9\"");
}

}  // namespace
}  // namespace harpe
