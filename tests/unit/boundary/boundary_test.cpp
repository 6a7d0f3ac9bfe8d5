#include "library/boundary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <new>
#include <stdexcept>

#include "run/run.h"
#include "support/check.h"
#include "support/threads.h"

namespace harpe::library {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

// The error of a call with this body.
template <class Body>
v1::Error error_of(const Body& body) {
  const v1::Checked<int> result = enter<int>({}, body);
  return result.error();
}

TEST(Boundary, gives_the_value_of_a_body) {
  EXPECT_EQ(enter<int>({}, [](Call&) -> harpe::Checked<int> { return 7; }).value(), 7);
}

TEST(Boundary, makes_errors_of_diagnostics) {
  const v1::Error error = error_of([](Call&) -> harpe::Checked<int> {
    return with_note(make_diag(DiagCode::I505, {{"work", "the proof"}}), "of a test");
  });
  EXPECT_EQ(error.kind, v1::ErrorKind::Refused);
  EXPECT_EQ(error.code, "I505");
  EXPECT_EQ(error.message, "the proof was given up: the time for it is over");
  EXPECT_THAT(error.notes, testing::ElementsAre("of a test"));
  EXPECT_EQ(error.text,
            "error[I505]: " + error.message + "; " + error.remedy + "\n  note: of a test");
}

TEST(Boundary, makes_bugs_of_broken_invariants) {
  const v1::Error error = error_of([](Call& call) -> harpe::Checked<int> {
    const Request request{.target = "gemm", .parameters = {"m=8"}, .mesh = "x=2"};
    HP_REQUIRE_OK(call.session().program(request));
    HP_CHECK(false, "a test breaks it");
  });
  EXPECT_EQ(error.kind, v1::ErrorKind::Bug);
  EXPECT_EQ(error.code, "");
  EXPECT_THAT(error.message, HasSubstr("`false` does not hold: a test breaks it"));
  EXPECT_THAT(error.text, StartsWith("bug in harpe: "));
  EXPECT_THAT(error.reproduction, HasSubstr("program gemm"));
}

TEST(Boundary, lets_no_exception_pass) {
  const auto throws = [](const auto& exception) {
    return [exception](Call&) -> harpe::Checked<int> { throw exception; };
  };
  EXPECT_EQ(error_of(throws(std::bad_alloc())).kind, v1::ErrorKind::Fault);
  EXPECT_EQ(error_of(throws(std::bad_alloc())).message, "out of memory");
  const v1::Error refused = error_of(throws(ThreadRefused(EAGAIN)));
  EXPECT_EQ(refused.kind, v1::ErrorKind::Fault);
  EXPECT_EQ(refused.code, "X018");
  EXPECT_EQ(error_of(throws(std::runtime_error("of a callback"))).kind, v1::ErrorKind::Bug);
  EXPECT_EQ(error_of(throws(42)).kind, v1::ErrorKind::Bug);
}

TEST(Boundary, hands_warnings_on) {
  std::vector<std::string> warnings;
  const v1::Options options{.warn = [&](const std::string& text) { warnings.push_back(text); }};
  const auto warned = enter<int>(options, [](Call& call) -> harpe::Checked<int> {
    call.session().warn(make_diag(DiagCode::I505, {{"work", "something"}}));
    return 0;
  });
  EXPECT_TRUE(warned.ok());
  EXPECT_THAT(warnings, testing::ElementsAre(StartsWith("warning[I505]: something was given up")));
}

TEST(Boundary, says_which_rank_waited_for_whom) {
  Session session(false);
  const Plan plan = session
                        .plan({.target = "gemm_rs",
                               .parameters = {"m=24", "n=16", "k=32", "dtype=f32"},
                               .mesh = "tp=4",
                               .schedule = "ring"})
                        .value();
  RunRequest request;
  request.wait_limit = request.backend.wait_limit = std::chrono::milliseconds(50);
  const auto lost = std::ranges::find(plan.tasks, TaskKind::Compute, &Task::kind);
  request.backend.lose_at = TaskId(lost - plan.tasks.begin());
  const RunOutcome outcome = run(plan, request, prepare_run(plan, request).value()).value();
  ASSERT_TRUE(outcome.fault.has_value());
  const v1::Error error = to_error(*outcome.fault, "gemm_rs on tp=4");
  EXPECT_EQ(error.kind, v1::ErrorKind::Fault);
  EXPECT_THAT(error.message, HasSubstr(" lost the worker that had reached task "));
  EXPECT_THAT(error.notes,
              Contains(AllOf(HasSubstr(" waited "), HasSubstr("its producer is task"))));
  EXPECT_THAT(error.text, StartsWith("fault: gemm_rs on tp=4\nrank "));
}

}  // namespace
}  // namespace harpe::library
