#include "compile/library_price.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "compile/launches.h"
#include "compile/machines.h"
#include "compile/simulation.h"
#include "compile/tune.h"
#include "measure/library_run.h"

namespace harpe {
namespace {

struct Measured2 {
  const char* op;
  int m, n, k;
  double libraries_us;  // on two H200: NCCL with cuBLASLt (docs/benchmarks/plan_times.md)
};
const std::vector<Measured2> kMeasured = {
    {"ag_gemm", 8, 10240, 8192, 36.1},   {"ag_gemm", 8, 28672, 4096, 41.3},
    {"ag_gemm", 8, 57344, 8192, 128.3},  {"gemm_rs", 8, 8192, 8192, 30.2},
    {"gemm_rs", 8, 8192, 28672, 67.1},   {"gemm_ar", 1, 8192, 8192, 31.5},
    {"gemm_ar", 1, 4096, 4096, 19.6},    {"gemm_ar", 1, 8192, 28672, 69.5},
    {"ag_gemm", 64, 10240, 8192, 44.2},  {"gemm_rs", 64, 4096, 14336, 31.3},
    {"gemm_rs", 64, 8192, 28672, 72.5},  {"gemm_ar", 16, 8192, 8192, 33.7},
    {"ag_gemm", 256, 28672, 4096, 67.2}, {"gemm_rs", 192, 5120, 8192, 39.9},
    {"gemm_ar", 16, 4096, 4096, 21.7},   {"gemm_ar", 256, 8192, 28672, 122.9},
};

Request request_of(const Measured2& one) {
  return {.target = one.op,
          .parameters = {"m=" + std::to_string(one.m), "n=" + std::to_string(one.n),
                         "k=" + std::to_string(one.k)},
          .mesh = "tp=2"};
}

// Rows that are not multiples of 16 bytes, which Harpe's kernels store by element.
const Request kFasterByLibraries = {
    .target = "gemm_ar", .parameters = {"m=160", "n=1004", "k=57344"}, .mesh = "tp=2"};

Tuned tune_case(Request subject) {
  TuneRequest request;
  request.subject = std::move(subject);
  request.search.top = 1;
  Session session(false);
  Checked<Tuned> tuned = tune(session, request);
  HP_CHECK(tuned.ok(), render(tuned.error()));
  return std::move(tuned).value();
}

std::optional<LibraryPrice> price_on(const std::string& machine, const Request& subject) {
  Session session(false);
  return price_libraries(session.program(subject).value(), subject.parameters,
                         session.mesh(subject).value(), load_machine(machine).value(),
                         from_microseconds(100));
}

TEST(LibraryPrice, is_near_what_two_H200_take) {
  double sum = 0;
  for (const Measured2& one : kMeasured) {
    const std::optional<LibraryPrice> price = price_on("h200x8", request_of(one));
    ASSERT_TRUE(price.has_value()) << one.op;
    const double ratio = price->time.microseconds() / one.libraries_us;
    EXPECT_NEAR(ratio, 1, 0.2) << one.op << " " << one.m << " " << one.n << " " << one.k;
    sum += std::log(ratio);
    EXPECT_DOUBLE_EQ(price->ratio(), price->time.microseconds() / 100);
  }
  EXPECT_NEAR(std::exp(sum / static_cast<double>(kMeasured.size())), 1, 0.1);
}

TEST(LibraryPrice, is_faster_than_the_choice_where_rows_are_stored_by_element) {
  for (const Measured2& one : kMeasured) {
    const Tuned tuned = tune_case(request_of(one));
    ASSERT_TRUE(tuned.libraries.has_value());
    EXPECT_EQ(tuned.libraries->schedule, tuned.result.top.front().time());
  }
  const Tuned some_rows = tune_case(kFasterByLibraries);
  EXPECT_TRUE(some_rows.libraries->is_faster());
  const Tuned large = tune_case(
      {.target = "ag_gemm", .parameters = {"m=8192", "n=28672", "k=8192"}, .mesh = "tp=2"});
  ASSERT_TRUE(large.libraries.has_value());
  EXPECT_FALSE(large.libraries->is_faster());
}

TEST(LibraryPrice, is_of_products_with_one_collective_where_libraries_were_measured) {
  const Request product = request_of(kMeasured.front());
  EXPECT_EQ(price_on("h200x8", product)->way, "all-gather, GEMM");
  EXPECT_EQ(price_on("h200x8", request_of(kMeasured[3]))->way, "GEMM, reduce-scatter");
  EXPECT_EQ(price_on("h200x8", request_of(kMeasured[5]))->way, "GEMM, all-reduce");
  EXPECT_FALSE(price_on("l4x8", product).has_value()) << "from data sheets";
  EXPECT_FALSE(price_on("cpu", product).has_value());
  EXPECT_FALSE(price_on("h200x8", {.target = "attention", .parameters = {}, .mesh = "cp=2"}));
  Request plain = product;
  plain.parameters.emplace_back("dtype=f32");
  EXPECT_FALSE(price_on("h200x8", plain).has_value()) << "libraries are asked for 16 bits";
  Request one_rank = product;
  one_rank.mesh = "tp=1";
  EXPECT_FALSE(price_on("h200x8", one_rank).has_value()) << "no collective";
  Request uneven = product;
  uneven.parameters.front() = "m=9";
  EXPECT_FALSE(price_on("h200x8", uneven).has_value()) << "rows do not divide";
}

// Two H200 take 40.3 us with cuBLASLt's kernel.
TEST(LibraryPrice, is_that_of_leaves_given_to_a_library) {
  Session session(false);
  Request subject = request_of(kMeasured[3]);
  const Machine machine = load_machine("h200x8").value();
  const auto time = [&](const char* schedule) {
    subject.schedule = schedule;
    const Plan plan = session.plan(subject).value();
    return simulate(plan, launches_on(plan, machine), machine)->total.microseconds();
  };
  EXPECT_NEAR(time("bulk+cublaslt_gemm"), 40.3, 4);
}

// The price covers one machine's processors; ranks of two hosts cannot share a process.
TEST(LibraryPrice, is_of_one_host) {
  Request subject = request_of(kMeasured[4]);
  subject.mesh = "node=2,tp=8";
  EXPECT_FALSE(price_on("h200x8x2", subject).has_value());
}

TEST(LibraryPrice, stands_beside_what_auto_runs_on_GPUs) {
  Session session(false);
  Request subject = kFasterByLibraries;
  subject.site = find_site(Backend::Cuda);
  const Plan plan = session.plan(subject).value();
  const std::optional<LibraryPrice> price = price_beside(session, subject, plan);
  ASSERT_TRUE(price.has_value());
  EXPECT_TRUE(price->is_faster());
  const Machine machine = load_machine("h200x8").value();
  EXPECT_EQ(price->schedule, simulate(plan, launches_on(plan, machine), machine)->total);
  subject.schedule = "push";
  EXPECT_FALSE(price_beside(session, subject, plan).has_value()) << "was asked for by name";
  subject.schedule = "auto";
  EXPECT_TRUE(price_beside(session, subject, plan).has_value());
  subject.site = find_site(Backend::Cpu);
  EXPECT_FALSE(price_beside(session, subject, plan).has_value()) << "no library runs there";
}

// Weights larger than the cache: a single launch reads them once, for any number of tasks. Several
// launches would read them again or compute padding.
TEST(Auto, reads_weights_once_at_few_rows) {
  for (const Measured2& one : kMeasured) {
    const double weights = 1.0 * one.n * one.k;  // bytes on one of two ranks
    if (one.m > 64 || weights <= load_machine("h200x8")->processor.cache_bytes) continue;
    const Tuned tuned = tune_case(request_of(one));
    Session session(false);
    Request subject = request_of(one);
    const Plan plan = session
                          .lower({.program = tuned.program,
                                  .mesh = tuned.mesh,
                                  .script = {},
                                  .form = tuned.result.top.front().form})
                          .value();
    for (std::size_t queue = 0; queue < plan.queues.size(); ++queue) {
      std::set<std::int32_t> launches;
      for (const Task& task : plan.tasks) {
        if (task.kind != TaskKind::Compute || task.queue.index() != queue) continue;
        launches.insert(task.kernel >= 0 ? task.kernel : -1 - task.stmt);
      }
      EXPECT_LE(launches.size(), 1U) << one.op << " " << one.m << "x" << one.n << "x" << one.k
                                     << ": " << tuned.result.top.front().label;
    }
  }
}

}  // namespace
}  // namespace harpe
