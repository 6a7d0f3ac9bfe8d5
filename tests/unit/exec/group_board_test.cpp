#include "exec/cpu/group_board.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "transport/rendezvous.h"

namespace harpe::cpu {
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

// What rank 0 finds of rank 1, a process that has ended after `body`, in its own turn 1 and 2.
template <class Body>
std::pair<std::optional<int>, std::optional<int>> find_gone_after(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    Checked<GroupBoard> board = make_board(1);
    if (board.ok()) body(*board);
    ::_exit(board.ok() ? 0 : 1);
  }
  Checked<GroupBoard> board = make_board(0);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(board.ok());
  board->begin(1, 0);
  const std::optional<int> first = board->find_gone();
  board->begin(2, 0);
  return {first, board->find_gone()};
}

TEST(GroupBoard, misses_who_has_ended_in_the_middle) {
  const auto [first, second] = find_gone_after([](GroupBoard& board) { board.begin(1, 0); });
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
}

TEST(GroupBoard, misses_who_has_done_its_part_only_in_the_next_execution) {
  const auto [first, second] = find_gone_after([](GroupBoard& board) {
    board.begin(1, 0);
    board.end();
  });
  EXPECT_EQ(first, std::nullopt);
  EXPECT_EQ(second, 1);
}

TEST(GroupBoard, does_not_name_who_gave_up_because_of_another) {
  const auto [first, second] = find_gone_after([](GroupBoard& board) {
    board.begin(1, 0);
    board.stop();
  });
  EXPECT_EQ(first, std::nullopt);
  EXPECT_EQ(second, std::nullopt);
}

}  // namespace
}  // namespace harpe::cpu
