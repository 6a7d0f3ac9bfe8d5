#include "exec/group/group_board.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/child_process.h"
#include "transport/local_exchange.h"
#include "transport/rendezvous.h"

namespace harpe {
namespace {

Checked<GroupBoard> make_board(int rank) {
  HP_TRY(const auto exchange, transport::Rendezvous::meet(
                                  {.address = "unix:@harpe-board-" +
                                              std::to_string(rank == 0 ? ::getpid() : ::getppid()),
                                   .secret = "s",
                                   .rank = rank,
                                   .ranks = 2,
                                   .limit = std::chrono::seconds(20)}));
  return GroupBoard::make(*exchange);
}

// What rank 0 detects about rank 1, a process that exits after `body`, in executions 1 and 2.
template <class Body>
std::pair<std::optional<int>, std::optional<int>> find_gone_after(const Body& body) {
  const pid_t child = start_child([&] {
    Checked<GroupBoard> board = make_board(1);
    if (board.ok()) body(*board);
    return board.ok() ? 0 : 1;
  });
  Checked<GroupBoard> board = make_board(0);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(board.ok());
  board->begin(0);
  const std::optional<int> first = board->find_gone();
  board->begin(0);
  return {first, board->find_gone()};
}

TEST(GroupBoard, misses_who_has_ended_in_the_middle) {
  const auto [first, second] = find_gone_after([](GroupBoard& board) { board.begin(0); });
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
}

TEST(GroupBoard, misses_who_has_done_its_part_only_in_the_next_execution) {
  const auto [first, second] = find_gone_after([](GroupBoard& board) {
    board.begin(0);
    board.end();
  });
  EXPECT_EQ(first, std::nullopt);
  EXPECT_EQ(second, 1);
}

TEST(GroupBoard, does_not_miss_who_was_ahead) {
  const auto [first, second] = find_gone_after([](GroupBoard& board) {
    for (int turn = 0; turn < 2; ++turn) {
      board.begin(0);
      board.end();
    }
  });
  EXPECT_EQ(first, std::nullopt);
  EXPECT_EQ(second, std::nullopt);
}

TEST(GroupBoard, does_not_name_who_gave_up_because_of_another) {
  const auto [first, second] = find_gone_after([](GroupBoard& board) {
    board.begin(0);
    board.stop();
  });
  EXPECT_EQ(first, std::nullopt);
  EXPECT_EQ(second, std::nullopt);
}

// Two ranks of this process, each with the executables `one` and `other`.
std::vector<GroupBoard> make_boards() {
  std::vector<std::optional<GroupBoard>> made(2);
  {
    std::vector<std::jthread> threads;
    for (const auto& exchange : transport::make_local_exchanges(2, std::chrono::seconds(20))) {
      threads.emplace_back([&made, exchange] {
        const auto rank = static_cast<std::size_t>(exchange->rank());
        made[rank].emplace(GroupBoard::make(*exchange).value());
      });
    }
  }
  std::vector<GroupBoard> boards;
  for (std::optional<GroupBoard>& board : made) {
    EXPECT_EQ(board->add("one"), 0U);
    EXPECT_EQ(board->add("other"), 1U);
    boards.push_back(*std::move(board));
  }
  return boards;
}

TEST(GroupBoard, tells_only_ranks_that_have_come_as_far) {
  std::vector<GroupBoard> boards = make_boards();
  for (GroupBoard& board : boards) board.begin(0);
  boards[1].end();
  boards[1].begin(0);
  boards[1].stop();
  EXPECT_FALSE(boards[0].has_stopped()) << "rank 1 has done its part of this one";
  boards[0].begin(0);
  EXPECT_TRUE(boards[0].has_stopped());
  EXPECT_FALSE(boards[1].has_stopped()) << "another has";
}

TEST(GroupBoard, tells_ranks_behind_of_an_earlier_execution_that_differs) {
  std::vector<GroupBoard> boards = make_boards();
  boards[0].begin(0);
  for (const std::uint32_t executable : {1, 0, 0}) boards[1].begin(executable);
  boards[1].stop();
  EXPECT_TRUE(boards[0].has_stopped());
}

TEST(GroupBoard, names_both_executables_of_the_first_execution_that_differs) {
  std::vector<GroupBoard> boards = make_boards();
  for (const std::uint32_t executable : {0, 1, 0}) boards[0].begin(executable);
  for (const std::uint32_t executable : {0, 1}) {
    boards[1].begin(executable);
    EXPECT_FALSE(boards[1].find_mismatch());
  }
  EXPECT_FALSE(boards[0].find_mismatch(GroupBoard::kHistory)) << "rank 1 has not come so far";
  boards[1].begin(1);
  boards[0].begin(0);
  const std::optional<Diag> found = boards[1].find_mismatch();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->code, DiagCode::I311);
  EXPECT_EQ(render(*found),
            "error[I311]: `execution 3 of the group` must be of the same plan on all ranks, but is "
            "executable 1 (`other`) on rank 1 and executable 0 (`one`) on rank 0");
  EXPECT_FALSE(boards[0].find_mismatch()) << "of its last execution";
  ASSERT_TRUE(boards[0].find_mismatch(GroupBoard::kHistory));
  EXPECT_NE(render(*boards[0].find_mismatch(GroupBoard::kHistory)).find("execution 3"),
            std::string::npos);
}

TEST(GroupBoard, compares_places_of_the_same_executable) {
  std::vector<GroupBoard> boards = make_boards();
  boards[0].begin(1, 7);
  boards[1].begin(1, 7);
  EXPECT_FALSE(boards[1].find_mismatch());
  boards[0].begin(1, 7);
  boards[1].begin(1, 8);
  ASSERT_TRUE(boards[1].find_mismatch());
  EXPECT_NE(render(*boards[1].find_mismatch()).find("at the same place"), std::string::npos);
}

TEST(GroupBoard, compares_as_many_executions_as_it_keeps_until_it_is_cleared) {
  std::vector<GroupBoard> boards = make_boards();
  boards[0].begin(0);
  boards[1].begin(1);
  for (std::uint32_t turn = 1; turn < GroupBoard::kHistory; ++turn) {
    for (GroupBoard& board : boards) board.begin(0);
  }
  EXPECT_TRUE(boards[0].find_mismatch(GroupBoard::kHistory));
  for (GroupBoard& board : boards) board.begin(0);
  EXPECT_FALSE(boards[0].find_mismatch(GroupBoard::kHistory)) << "it is forgotten";
  boards[1].stop();
  boards[0].begin(1);
  for (GroupBoard& board : boards) board.clear();
  boards[1].begin(0);
  EXPECT_FALSE(boards[1].find_mismatch(GroupBoard::kHistory));
  EXPECT_FALSE(boards[0].has_stopped());
}

}  // namespace
}  // namespace harpe
