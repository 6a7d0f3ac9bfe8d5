#include "measure/executor_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace harpe {
namespace {

using testing::ElementsAre;

// Occupies one place of the pool's memory while it lives.
class FakeExecutor final : public Executor {
 public:
  FakeExecutor(std::multiset<std::size_t>& alive, std::size_t index)
      : alive_(alive), at_(alive.insert(index)) {}
  ~FakeExecutor() override { alive_.erase(at_); }
  Checked<Ok> set_input(const std::string&, const HostTensor&) override { return Ok{}; }
  Result<RunStats, FaultReport> run(const RunOptions&) override { return RunStats{}; }
  Checked<HostTensor> output(const std::string&) const override { return HostTensor{}; }

 private:
  std::multiset<std::size_t>& alive_;
  std::multiset<std::size_t>::iterator at_;
};

class Memory {
 public:
  explicit Memory(std::size_t places) : places_(places) {}
  [[nodiscard]] ExecutorPool pool() {
    return ExecutorPool([this](std::size_t index) -> Checked<std::unique_ptr<Executor>> {
      ++makes;
      if (index == kRefused) return make_diag(DiagCode::G074, {{"task", 0}, {"via", "proxy"}});
      if (alive.size() == places_) {
        return make_diag(DiagCode::G073, {{"gpu", 0}, {"free", 0}, {"needed", 1}});
      }
      return std::unique_ptr<Executor>(std::make_unique<FakeExecutor>(alive, index));
    });
  }

  static constexpr std::size_t kRefused = 99;
  std::multiset<std::size_t> alive;
  int makes = 0;

 private:
  std::size_t places_;
};

TEST(ExecutorPool, makes_each_once_while_all_fit) {
  Memory memory(3);
  ExecutorPool pool = memory.pool();
  for (int round = 0; round < 2; ++round) {
    for (const std::size_t index : {0U, 1U, 2U}) {
      const auto got = pool.at(index);
      ASSERT_TRUE(got.ok());
      EXPECT_EQ(got->is_new, round == 0);
    }
  }
  EXPECT_EQ(memory.makes, 3);
  pool.drop(1);
  EXPECT_THAT(memory.alive, ElementsAre(0, 2));
}

TEST(ExecutorPool, makes_room_by_the_one_that_was_asked_for_last) {
  Memory memory(2);
  ExecutorPool pool = memory.pool();
  for (const std::size_t index : {0U, 1U, 2U}) ASSERT_TRUE(pool.at(index).ok());
  EXPECT_THAT(memory.alive, ElementsAre(0, 2));
  // The first executor survives into the next round.
  EXPECT_FALSE(pool.at(0)->is_new);
  EXPECT_TRUE(pool.at(1)->is_new);
  EXPECT_THAT(memory.alive, ElementsAre(1, 2));
}

TEST(ExecutorPool, refuses_what_does_not_fit_alone_or_is_refused_for_another_reason) {
  Memory none(0);
  ExecutorPool empty = none.pool();
  EXPECT_EQ(empty.at(0).error().code, DiagCode::G073);
  Memory memory(2);
  ExecutorPool pool = memory.pool();
  ASSERT_TRUE(pool.at(0).ok());
  EXPECT_EQ(pool.at(Memory::kRefused).error().code, DiagCode::G074);
  EXPECT_THAT(memory.alive, ElementsAre(0)) << "nobody went for it";
}

}  // namespace
}  // namespace harpe
