#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "measure/baselines/baselines.h"

namespace harpe::library {
namespace {

// The calls to a fake NCCL, in order; a call that begins with `failing` fails.
struct Asked {
  std::vector<std::string> calls;
  std::string failing = "nothing";
};

Asked& asked() {
  thread_local Asked calls;
  return calls;
}

int note(const std::string& call) {
  asked().calls.push_back(call);
  return call.starts_with(asked().failing) ? 5 : 0;
}

std::string at(const void* address) {
  return std::to_string(reinterpret_cast<std::uintptr_t>(address));
}

std::shared_ptr<const NcclFunctions> fake() {
  NcclFunctions functions;
  functions.ncclGroupStart = [] { return note("start"); };
  functions.ncclGroupEnd = [] { return note("end"); };
  functions.ncclSend = [](const void* from, std::size_t count, int type, int peer, NcclHandle,
                          CUstream) {
    return note("send " + at(from) + " " + std::to_string(count) + " type " + std::to_string(type) +
                " to " + std::to_string(peer));
  };
  functions.ncclRecv = [](void* to, std::size_t count, int, int peer, NcclHandle, CUstream) {
    return note("receive " + at(to) + " " + std::to_string(count) + " from " +
                std::to_string(peer));
  };
  functions.ncclAllGather = [](const void* from, void* to, std::size_t count, int type, NcclHandle,
                               CUstream) {
    return note("gather " + at(from) + " " + at(to) + " " + std::to_string(count) + " type " +
                std::to_string(type));
  };
  functions.ncclAllReduce = [](const void* from, void* to, std::size_t count, int type,
                               int operation, NcclHandle, CUstream) {
    return note("reduce " + at(from) + " " + at(to) + " " + std::to_string(count) + " type " +
                std::to_string(type) + " by " + std::to_string(operation));
  };
  functions.ncclCommDestroy = [](NcclHandle) { return 0; };
  functions.ncclGetErrorString = [](int status) {
    return status == 5 ? "invalid usage" : "something else";
  };
  return std::make_shared<const NcclFunctions>(functions);
}

class NcclTest : public testing::Test {
 protected:
  void SetUp() override { asked() = {}; }
  NcclRank rank_{fake(), nullptr};
};

TEST_F(NcclTest, parts_are_exchanged_in_one_group) {
  const Elements part{.address = 1000, .count = 10, .type = device::Element::BF16};
  ASSERT_TRUE(rank_.exchange(part, 5000, 2, nullptr).ok());
  EXPECT_EQ(asked().calls, (std::vector<std::string>{
                               "start", "send 1000 10 type 9 to 0", "receive 5000 10 from 0",
                               "send 1020 10 type 9 to 1", "receive 5020 10 from 1", "end"}));
}

TEST_F(NcclTest, messages_have_lengths_of_their_own) {
  const Elements far{.address = 1000, .count = 10, .type = device::Element::BF16};
  const Elements own{.address = 2000, .count = 3, .type = device::Element::F16};
  ASSERT_TRUE(rank_.exchange({{1, far}, {0, own}}, {{0, own}, {1, far}}, nullptr).ok());
  EXPECT_EQ(asked().calls, (std::vector<std::string>{
                               "start", "send 1000 10 type 9 to 1", "send 2000 3 type 6 to 0",
                               "receive 2000 3 from 0", "receive 1000 10 from 1", "end"}));
}

TEST_F(NcclTest, a_call_is_what_its_kind_says) {
  const Elements part{.address = 1000, .count = 10, .type = device::Element::BF16};
  NcclCall call{.rank = &rank_, .kind = NcclCall::Kind::AllGather, .part = part, .whole = 5000};
  call.sends = {{1, part}};
  ASSERT_TRUE(order(call, nullptr).ok());
  EXPECT_EQ(asked().calls, std::vector<std::string>{"gather 1000 5000 10 type 9"});
  asked() = {};
  call.kind = NcclCall::Kind::Exchange;
  ASSERT_TRUE(order(call, nullptr).ok());
  EXPECT_EQ(asked().calls, (std::vector<std::string>{"start", "send 1000 10 type 9 to 1", "end"}));
}

TEST_F(NcclTest, a_group_is_ended_though_a_call_in_it_failed) {
  asked().failing = "send";
  const Checked<Ok> done =
      rank_.exchange({.address = 0, .count = 1, .type = device::Element::F32}, 0, 2, nullptr);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(render(done.error()), "error[G080]: call `ncclSend` of NCCL failed: invalid usage");
  EXPECT_EQ(asked().calls.back(), "end");
}

TEST_F(NcclTest, sums_are_made_in_place) {
  const Elements data{.address = 64, .count = 7, .type = device::Element::F32};
  ASSERT_TRUE(rank_.all_reduce(data, nullptr).ok());
  EXPECT_EQ(asked().calls, std::vector<std::string>{"reduce 64 64 7 type 7 by 0"});
}

TEST(Libraries, that_are_nowhere_are_refused_with_what_would_help) {
  const auto opened =
      open_library({.what = "NCCL", .names = {"libno-such-thing.so"}, .remedy = "install NCCL 2"},
                   {.file = "", .folders = {"/no/such/folder"}});
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, DiagCode::G002);
}

TEST(Libraries, of_a_name_are_that_file_and_no_other) {
  const auto opened = open_library({.what = "C", .names = {"libc.so.6"}, .remedy = "none"},
                                   {.file = "/no/such/file.so", .folders = {}});
  EXPECT_FALSE(opened.ok());
}

TEST(Libraries, that_the_process_has_come_first) {
  const auto opened = open_library({.what = "C", .names = {"libc.so.6"}, .remedy = "none"},
                                   {.file = "", .folders = {}});
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened->path(), "libc.so.6");
}

TEST(Baselines, refuse_what_does_not_divide) {
  const auto share = share_of("heads", 10, 4);
  ASSERT_FALSE(share.ok());
  EXPECT_EQ(render(share.error()),
            "error[G081]: there is no baseline for 10 heads: they are not multiples of 4");
}

}  // namespace
}  // namespace harpe::library
