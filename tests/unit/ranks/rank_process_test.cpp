#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <vector>

#include "tests/support/child_process.h"
#include "tests/unit/library/questions.h"
#include "tests/unit/library/rank_tensors.h"

// Ranks as processes. This process computes nothing, so that it may fork.
namespace harpe {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

// The body of a rank's process; returning false or throwing fails the test.
using Body = std::function<bool(const Group& group)>;

class RankProcesses : public testing::Test {
 protected:
  void start(int ranks, const Body& body) {
    static int count = 0;
    const std::string address =
        "unix:@harpe-ranks-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
    for (int rank = 0; rank < ranks; ++rank) {
      const pid_t child = start_child([&] {
        const Meeting meeting{.address = address, .secret = "s", .rank = rank, .ranks = ranks};
        return body(Group::join({.exchange = meet(meeting).value()}).value()) ? 0 : 1;
      });
      ASSERT_GE(child, 0);
      processes_.push_back(child);
    }
  }

  // The exit status; -1 if a signal killed it.
  int wait_for(int rank) {
    int status = 0;
    EXPECT_EQ(::waitpid(processes_[static_cast<std::size_t>(rank)], &status, 0),
              processes_[static_cast<std::size_t>(rank)]);
    processes_[static_cast<std::size_t>(rank)] = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  void TearDown() override {
    for (const pid_t process : processes_) {
      if (process == 0) continue;
      ::kill(process, SIGKILL);
      ::waitpid(process, nullptr, 0);
    }
  }

  std::vector<pid_t> processes_;
};

// A rank's executable of a question, and its tensors.
struct Loaded {
  Plan plan;
  Executable executable;
  Tensors inputs = draw_inputs(plan, 7).value();
  RankTensors own;

  Loaded(const Question& question, const Group& group)
      : plan(harpe::plan(question).value()),
        executable(Executable::make(group, plan).value()),
        own(plan, executable, group.rank(), inputs) {}

  [[nodiscard]] Checked<Done> launch() { return executable.launch(nullptr, own.arguments()); }
  // True if the result equals run()'s part for this rank.
  [[nodiscard]] bool is_right(int rank) const {
    for (const auto& [name, whole] : run_whole(plan, inputs)) {
      if (own.tensors.at(name).data == shard(plan, name, rank, whole.view()).value().data) continue;
      std::fprintf(stderr, "`%s` on rank %d differs\n", name.c_str(), rank);
      return false;
    }
    return true;
  }
};

TEST_F(RankProcesses, have_the_bits_of_run) {
  start(4, [](const Group& group) {
    Loaded gemm(gemm_question(), group);
    Loaded attention(attention_question("zigzag_ring"), group);
    for (int round = 0; round < 3; ++round) {
      (void)gemm.launch().value();
      (void)attention.launch().value();
    }
    return gemm.is_right(group.rank()) && attention.is_right(group.rank());
  });
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(wait_for(rank), 0) << rank;
}

TEST_F(RankProcesses, name_one_that_is_killed_at_once) {
  start(4, [](const Group& group) {
    Loaded gemm(gemm_question(), group);
    const Clock::time_point begin = Clock::now();
    while (true) {
      if (group.rank() == 2 && Clock::now() - begin > milliseconds(300)) ::raise(SIGKILL);
      const Checked<Done> done = gemm.launch();
      if (done.ok()) continue;
      const Error& error = done.error();
      const bool is_named =
          error.text.find("rank 2 answers no more: its process ended") != std::string::npos;
      if (!is_named) std::fprintf(stderr, "%s\n", error.text.c_str());
      return error.kind == ErrorKind::Fault && is_named;
    }
  });
  EXPECT_EQ(wait_for(2), -1);
  const Clock::time_point killed = Clock::now();
  for (const int rank : {0, 1, 3}) EXPECT_EQ(wait_for(rank), 0) << rank;
  // Usually milliseconds; the wait limit is a minute.
  EXPECT_LT(Clock::now() - killed, seconds(10));
}

}  // namespace
}  // namespace harpe
