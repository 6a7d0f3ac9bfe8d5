#include "exec/cuda/executor/communicators.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "tests/support/fake_driver.h"

namespace harpe::cuda {
namespace {

using library::NcclFunctions;
using library::NcclHandle;
using library::NcclId;

// The calls to a fake NCCL; one for the process, like the library.
struct Asked {
  std::mutex mutex;
  int ids = 0;
  std::vector<std::string> joins;  // "rank 1 of 2 by id 1"
  int aborts = 0;
  int ends = 0;
  int status = 0;                      // of joining
  std::atomic<bool> is_stuck = false;  // delays the join of rank 1
};

Asked& asked() {
  static Asked one;
  return one;
}

library::Nccl fake() {
  NcclFunctions functions;
  functions.ncclGetUniqueId = [](NcclId* id) {
    const std::lock_guard lock(asked().mutex);
    id->bytes[0] = static_cast<char>('1' + asked().ids++);
    return 0;
  };
  functions.ncclCommInitRank = [](NcclHandle* comm, int ranks, NcclId id, int rank) {
    while (rank == 1 && asked().is_stuck) std::this_thread::yield();
    const std::lock_guard lock(asked().mutex);
    asked().joins.push_back("rank " + std::to_string(rank) + " of " + std::to_string(ranks) +
                            " by id " + id.bytes[0]);
    *comm = reinterpret_cast<NcclHandle>(asked().joins.size());
    return asked().status;
  };
  functions.ncclCommAbort = [](NcclHandle) {
    const std::lock_guard lock(asked().mutex);
    ++asked().aborts;
    return 0;
  };
  functions.ncclCommDestroy = [](NcclHandle) {
    const std::lock_guard lock(asked().mutex);
    ++asked().ends;
    return 0;
  };
  functions.ncclGetErrorString = [](int) { return "no route"; };
  return {std::make_shared<const NcclFunctions>(functions), "2.28.9", "libnccl.so.2"};
}

// Returns a rank's own contribution as that of the other rank too, except for the first byte.
class Mirror final : public transport::Exchange {
 public:
  [[nodiscard]] int rank() const override { return 1; }
  [[nodiscard]] int ranks() const override { return 2; }
  [[nodiscard]] Checked<std::vector<transport::Blob>> all_gather(
      std::span<const std::byte> own) override {
    transport::Blob others(own.begin(), own.end());
    if (!others.empty()) others[0] = std::byte{'7'};
    if (is_silent) others.clear();
    return std::vector<transport::Blob>{others, transport::Blob(own.begin(), own.end())};
  }

  bool is_silent = false;
};

class CommunicatorsTest : public testing::Test {
 protected:
  void SetUp() override {
    asked().ids = asked().aborts = asked().ends = asked().status = 0;
    asked().joins.clear();
    driver_ = testing_support::make_fake_driver();
    testing_support::fake_gpu().devices = 2;
    for (int gpu = 0; gpu < 2; ++gpu) {
      gpus_.push_back(Device::open(driver_, DeviceId(gpu)).value());
    }
  }

  // Threads that nobody waits for must not meet the next test.
  void TearDown() override {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!are_over() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    EXPECT_TRUE(are_over()) << "a join or an end of a communicator is missing";
  }

  std::shared_ptr<const DriverApi> driver_;
  std::vector<Device> gpus_;
  std::size_t joins_ = 2;  // that the test asks for

 private:
  [[nodiscard]] bool are_over() const {
    const std::lock_guard lock(asked().mutex);
    const int joined = asked().status == 0 ? static_cast<int>(joins_) : 0;
    return asked().joins.size() == joins_ && asked().ends + asked().aborts == joined;
  }
};

const Team kBoth = {RankId(0), RankId(1)};

TEST_F(CommunicatorsTest, every_rank_of_the_process_joins_its_teams) {
  joins_ = 3;
  {
    Communicators all;
    EXPECT_TRUE(all.empty());
    ASSERT_TRUE(all.connect(fake(), {kBoth, {RankId(1)}}, {&gpus_[0], &gpus_[1]}, nullptr).ok());
    EXPECT_FALSE(all.empty());
    std::ranges::sort(asked().joins);
    EXPECT_EQ(asked().joins, (std::vector<std::string>{"rank 0 of 1 by id 2", "rank 0 of 2 by id 1",
                                                       "rank 1 of 2 by id 1"}));
    EXPECT_NE(&all.end(0, RankId(0)), &all.end(0, RankId(1)));
    EXPECT_NE(&all.end(0, RankId(1)), &all.end(1, RankId(1)));
  }
  EXPECT_EQ(asked().aborts, 3);
  EXPECT_EQ(asked().ends, 0) << "who ends with the others waits for them";
}

TEST_F(CommunicatorsTest, a_process_takes_the_id_of_the_first_of_the_team) {
  joins_ = 1;
  Communicators all;
  Mirror others;
  ASSERT_TRUE(all.connect(fake(), {kBoth}, {nullptr, &gpus_[1]}, &others).ok());
  EXPECT_EQ(asked().ids, 0);
  EXPECT_EQ(asked().joins, (std::vector<std::string>{"rank 1 of 2 by id 7"}));
}

TEST_F(CommunicatorsTest, a_first_rank_without_an_id_is_an_error_of_all) {
  joins_ = 0;
  Communicators all;
  Mirror others;
  others.is_silent = true;
  const auto refused = all.connect(fake(), {kBoth}, {nullptr, &gpus_[1]}, &others);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, DiagCode::N017);
  EXPECT_TRUE(asked().joins.empty());
}

TEST_F(CommunicatorsTest, nccls_refusal_is_said) {
  Communicators all;
  asked().status = 2;
  const auto refused = all.connect(fake(), {kBoth}, {&gpus_[0], &gpus_[1]}, nullptr);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(render_message(refused.error()), "call `ncclCommInitRank` of NCCL failed: no route");
}

TEST_F(CommunicatorsTest, who_does_not_come_is_not_waited_for) {
  asked().is_stuck = true;
  {
    Communicators all;
    const auto refused = all.connect(fake(), {kBoth}, {&gpus_[0], &gpus_[1]}, nullptr,
                                     std::chrono::milliseconds(20));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, DiagCode::G082);
    EXPECT_EQ(render_message(refused.error()), "NCCL did not connect 2 ranks within 1 s");
  }
  asked().is_stuck = false;
}

TEST_F(CommunicatorsTest, are_aborted_once) {
  {
    Communicators all;
    ASSERT_TRUE(all.connect(fake(), {kBoth}, {&gpus_[0], &gpus_[1]}, nullptr).ok());
    all.abort();
    all.abort();
  }
  EXPECT_EQ(asked().aborts, 2);
}

}  // namespace
}  // namespace harpe::cuda
