#include "io/json.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace harpe {
namespace {

TEST(Json, prints_what_another_reader_reads) {
  const Json value = Json::object()
                         .set("text", "a \"quoted\" \\ line\n\ttab \x01 é")
                         .set("list", Json::Array{1, -2.5, true, Json(), "x"})
                         .set("empty", Json::object())
                         .set("none", Json::Array{});
  for (const std::string& text : {value.print(), value.print_line()}) {
    const nlohmann::json read = nlohmann::json::parse(text);
    EXPECT_EQ(read["text"], "a \"quoted\" \\ line\n\ttab \x01 é");
    EXPECT_EQ(read["list"], nlohmann::json::parse("[1, -2.5, true, null, \"x\"]"));
    EXPECT_TRUE(read["empty"].is_object());
    EXPECT_TRUE(read["none"].is_array());
  }
}

TEST(Json, keeps_the_order_of_members) {
  EXPECT_EQ(Json::object().set("b", 1).set("a", Json::Array{1, 2}).print(),
            "{\n  \"b\": 1,\n  \"a\": [\n    1,\n    2\n  ]\n}");
  EXPECT_EQ(Json::object().set("b", 1).set("a", 2).print_line(), "{\"b\": 1, \"a\": 2}");
}

TEST(Json, has_null_for_what_json_cannot_say) {
  EXPECT_EQ(Json(std::numeric_limits<double>::infinity()).print(), "null");
  EXPECT_EQ(Json(std::numeric_limits<double>::quiet_NaN()).print(), "null");
  EXPECT_EQ(Json(0.1).print(), "0.1");
}

TEST(Json, replaces_bytes_that_are_no_text) {
  const std::string text = Json(
                               "a\xff\xc3"
                               "b")
                               .print();
  EXPECT_EQ(nlohmann::json::parse(text), "a\uFFFD\uFFFDb");
  // Longer than need be, and half a surrogate pair.
  EXPECT_EQ(Json("\xc0\x80\xed\xa0\x80").print(), "\"\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\"");
}

}  // namespace
}  // namespace harpe
