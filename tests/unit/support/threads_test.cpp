#include "support/threads.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <atomic>
#include <barrier>
#include <cerrno>
#include <string>

#include "support/limits.h"
#include "tests/support/child_process.h"

namespace harpe {
namespace {

TEST(Threads, are_all_there_before_one_begins) {
  constexpr std::size_t kCount = 8;
  std::barrier<> together(kCount);
  std::atomic<int> met = 0;
  run_in_threads(kCount, [&](std::size_t) {
    together.arrive_and_wait();
    ++met;
  });
  EXPECT_EQ(met, 8);
  run_in_threads(0, [](std::size_t) { FAIL(); });
}

TEST(Threads, hand_on_what_one_throws_once_all_have_ended) {
  std::atomic<int> ended = 0;
  Threads threads(4, [&](std::size_t i) {
    if (i == 2) throw std::runtime_error("two");
    ++ended;
  });
  EXPECT_THROW(threads.join(), std::runtime_error);
  EXPECT_EQ(ended, 3);
}

TEST(Threads, are_awaited_for_a_while) {
  std::atomic<bool> may_end = false;
  Threads threads(2, [&](std::size_t) { may_end.wait(false); });
  EXPECT_FALSE(threads.end_within(std::chrono::milliseconds(1)));
  may_end = true;
  may_end.notify_all();
  while (!threads.end_within(std::chrono::milliseconds(100))) {
  }
  threads.join();
  EXPECT_TRUE(Threads(0, [](std::size_t) {}).end_within(std::chrono::milliseconds(0)));
}

// The exit status of `body` in a new process, because limits apply to whole processes.
template <class Body>
int status_alone(const Body& body) {
  const pid_t child = start_child(body);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Stacks of 3 TiB: the address space of 128 TiB fits only some threads.
void allow_few_threads() {
  constexpr std::size_t kStack = std::size_t{3} << 40;
  pthread_attr_t attributes;
  ::pthread_getattr_default_np(&attributes);
  ::pthread_attr_setstacksize(&attributes, kStack);
  ::pthread_setattr_default_np(&attributes);
}

// Threads that had begun would wait at the barrier for ever.
TEST(Threads, begin_all_or_none) {
  EXPECT_EQ(status_alone([] {
              allow_few_threads();
              constexpr std::size_t kCount = 100;
              std::barrier<> together(kCount);
              std::atomic<bool> has_begun = false;
              EXPECT_THROW(run_in_threads(kCount,
                                          [&](std::size_t) {
                                            has_begun = true;
                                            together.arrive_and_wait();
                                          }),
                           ThreadRefused);
              return testing::Test::HasFailure() || has_begun ? 1 : 7;
            }),
            7);
}

TEST(Threads, are_refused_with_the_limits) {
  const std::string text = render_message(ThreadRefused(EAGAIN).diag());
  EXPECT_TRUE(
      text.starts_with("the system gives this process no more threads: Resource temporarily "
                       "unavailable; "))
      << text;
}

TEST(Limits, are_named) {
  const Diag diag = no_more(Limited::Files, EMFILE);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(render_message(diag),
            "the system gives this process no more open files: Too many open files; `ulimit -n` "
            "is " +
                std::to_string(limit.rlim_cur));
}

TEST(Limits, of_files_are_raised_as_far_as_they_go) {
  EXPECT_EQ(status_alone([] {
              rlimit limit{};
              ::getrlimit(RLIMIT_NOFILE, &limit);
              const rlim_t most = limit.rlim_max;
              limit.rlim_cur = 32;
              ::setrlimit(RLIMIT_NOFILE, &limit);
              raise_file_limit();
              ::getrlimit(RLIMIT_NOFILE, &limit);
              return limit.rlim_cur == most ? 7 : 1;
            }),
            7);
}

}  // namespace
}  // namespace harpe
