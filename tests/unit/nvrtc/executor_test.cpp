#include "exec/cuda/executor/cuda_executor.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "exec/cuda/jit/nvrtc.h"
#include "tests/support/child_process.h"
#include "tests/support/fake_driver.h"
#include "tests/support/proxy_plan.h"
#include "tests/unit/exec/plans.h"

// The executor on a driver without a GPU: kernels are compiled and loaded, but nothing runs.
namespace harpe::cuda {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing_support::fake_gpu;
using testing_support::is_told;
using testing_support::make_fake_driver;

constexpr int kRanks = 3;
constexpr milliseconds kWait{20'000};    // of a rank that is not asked to give up
constexpr milliseconds kQuickly{5'000};  // even on a busy machine

const std::vector<std::string> kFolders = {"/usr/local/cuda/lib64"};

Plan usual_plan() { return test::exchange(kRanks, 12, false); }

// A wait on a graph returns once the rank is asked to give up.
CUresult wait_until_told() {
  const auto end = steady_clock::now() + kWait;
  while (!is_told() && steady_clock::now() < end) std::this_thread::sleep_for(milliseconds(1));
  return CUDA_SUCCESS;
}

class OnFakeGpus : public testing::Test {
 protected:
  void SetUp() override {
    const auto compiler = Nvrtc::open(std::nullopt, kFolders);
    if (!compiler.ok()) GTEST_SKIP() << "skipped: " << render(compiler.error());
    static const std::string kKernels = [] {
      std::string path = (std::filesystem::temp_directory_path() / "harpe-fake-XXXXXX").string();
      return std::string(::mkdtemp(path.data()));
    }();
    folder_ = kKernels;
  }

  [[nodiscard]] Checked<std::unique_ptr<Executor>> make(
      const Plan& plan, std::shared_ptr<const DriverApi> driver,
      std::optional<processes::Launch> launch = std::nullopt) const {
    return make_cuda_executor(plan, {.kernel_cache = folder_,
                                     .cuda_folders = kFolders,
                                     .launch = std::move(launch),
                                     .driver = std::move(driver)});
  }

  // Runs the executor. Returns the faults, or nothing.
  [[nodiscard]] static std::string run(Executor& executor) {
    const auto stats = executor.run({.iterations = 20});
    return stats.ok() ? "" : render(stats.error());
  }

  std::string folder_;
};
using Preparation = OnFakeGpus;

TEST_F(Preparation, without_memory_for_any_part_is_refused_and_gives_all_back) {
  const Plan plan = usual_plan();
  int refused = 0;
  bool is_through = false;
  while (!is_through) {
    SCOPED_TRACE("resource " + std::to_string(refused));
    ASSERT_LT(refused, 1000);
    const auto driver = make_fake_driver();
    fake_gpu().devices = kRanks;
    fake_gpu().refuse_at = refused;
    {
      auto executor = make(plan, driver);
      if (!executor.ok()) {
        const std::string text = render(executor.error());
        EXPECT_TRUE(text.find("has no memory left for") != std::string::npos ||
                    text.find("CUDA_ERROR_OUT_OF_MEMORY") != std::string::npos)
            << text;
      } else {
        const std::string fault = run(**executor);
        is_through = fault.empty();
        if (!is_through) {
          EXPECT_NE(fault.find("lost its GPU: "), std::string::npos) << fault;
        }
      }
    }
    EXPECT_EQ(fake_gpu().held, 0);
    if (!is_through) ++refused;
  }
  EXPECT_GT(refused, 50) << "contexts, arenas, pages, kernels, streams, events and graphs";
  EXPECT_LT(fake_gpu().taken, refused + 1);
}

// Also rings, pinned memory and endpoints, and landings beside the rank's own work.
TEST_F(Preparation, of_plans_across_nodes_is_whole_and_gives_all_back) {
  for (const Fence fence : test::kAllFences) {
    SCOPED_TRACE(print(fence));
    const Plan plan = test::by_proxy(test::scatter_gemm(3, 9, 8, 8, "f32", false), fence);
    const auto driver = make_fake_driver();
    fake_gpu().devices = kRanks;
    {
      auto executor = make(plan, driver);
      ASSERT_TRUE(executor.ok()) << render(executor.error());
      EXPECT_EQ(run(**executor), "");
    }
    EXPECT_EQ(fake_gpu().held, 0);
  }
}

TEST_F(Preparation, after_which_a_gpu_fails_lets_no_other_wait_for_it) {
  const auto driver = make_fake_driver();
  fake_gpu().devices = kRanks;
  fake_gpu().on_wait = wait_until_told;
  static std::atomic<int> launches;
  launches = 0;
  fake_gpu().on_launch = [] {
    return ++launches == 10 ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
  };
  const auto executor = make(usual_plan(), driver);
  ASSERT_TRUE(executor.ok()) << render(executor.error());
  const auto start = steady_clock::now();
  const auto stats = (*executor)->run({.iterations = 20});
  EXPECT_LT(steady_clock::now() - start, kQuickly);
  ASSERT_FALSE(stats.ok());
  EXPECT_EQ(stats.error().front().kind, FaultKind::DeviceFailed) << render(stats.error());
  EXPECT_TRUE(stats.error().front().signal.starts_with("cuGraphLaunch: "));
}

// The end of a rank's process.
struct End {
  int status = 0;  // 128 plus the number of a signal that killed it
  std::string text;
  milliseconds took{0};
};

class Processes : public OnFakeGpus {
 protected:
  // Changes one rank's behaviour, in its own process with its own fake GPU.
  using Behave = std::function<void(int rank, Plan& plan)>;

  // Runs every rank as a process; returns their refusals or fault reports.
  [[nodiscard]] std::vector<End> run_all(const Behave& behave) const {
    static int count = 0;
    const std::string address =
        "unix:@harpe-fake-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
    {
      // Compiles kernels first, so that no rank waits for compilation.
      const auto warm = make(usual_plan(), make_fake_driver_of(kRanks));
      EXPECT_TRUE(warm.ok()) << render(warm.error());
    }
    std::vector<pid_t> children;
    const auto start = steady_clock::now();
    for (int rank = 0; rank < kRanks; ++rank) {
      children.push_back(start_child([&] { return run_rank(rank, address, behave); }));
    }
    std::vector<End> ends(kRanks);
    for (int left = kRanks; left > 0; --left) {
      int status = 0;
      const pid_t child = ::wait(&status);
      const auto rank = std::ranges::find(children, child) - children.begin();
      End& end = ends[static_cast<std::size_t>(rank)];
      end.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      end.took = std::chrono::duration_cast<milliseconds>(steady_clock::now() - start);
      std::ifstream file(text_of(static_cast<int>(rank)));
      std::stringstream text;
      text << file.rdbuf();
      end.text = text.str();
    }
    return ends;
  }

  static void expect_quick(const std::vector<End>& ends) {
    for (const End& end : ends) EXPECT_LT(end.took, kQuickly) << end.text;
  }

 private:
  static std::shared_ptr<const DriverApi> make_fake_driver_of(int devices) {
    auto driver = make_fake_driver();
    fake_gpu().devices = devices;
    return driver;
  }

  [[nodiscard]] std::string text_of(int rank) const {
    return folder_ + "/rank-" + std::to_string(rank) + ".txt";
  }

  [[nodiscard]] int run_rank(int rank, const std::string& address, const Behave& behave) const {
    std::ofstream text(text_of(rank));
    const auto driver = make_fake_driver_of(kRanks);
    Plan plan = usual_plan();
    behave(rank, plan);
    const auto executor = make(
        plan, driver,
        processes::Launch{.rank = rank, .ranks = kRanks, .local_rank = rank, .address = address});
    if (!executor.ok()) {
      text << render_message(executor.error()) << std::flush;
      return 1;
    }
    const std::string fault = run(**executor);
    text << fault << std::flush;
    return fault.empty() ? 0 : 3;
  }
};

TEST_F(Processes, that_all_run_end_well) {
  const std::vector<End> ends = run_all([](int, Plan&) {});
  for (const End& end : ends) EXPECT_EQ(end.status, 0) << end.text;
}

TEST_F(Processes, name_who_is_killed_among_them) {
  for (int victim = 0; victim < kRanks; ++victim) {
    SCOPED_TRACE("rank " + std::to_string(victim));
    const std::vector<End> ends = run_all([&](int rank, Plan&) {
      fake_gpu().on_wait = wait_until_told;
      if (rank != victim) return;
      fake_gpu().on_wait = [] {
        std::this_thread::sleep_for(milliseconds(100));
        return static_cast<CUresult>(::kill(::getpid(), SIGKILL));
      };
    });
    expect_quick(ends);
    const std::string lost = "rank " + std::to_string(victim) + " answers no more: its process";
    for (int rank = 0; rank < kRanks; ++rank) {
      const End& end = ends[static_cast<std::size_t>(rank)];
      EXPECT_EQ(end.status, rank == victim ? 128 + SIGKILL : 3);
      if (rank == victim) continue;
      EXPECT_TRUE(end.text.starts_with(lost)) << end.text;
      EXPECT_NE(end.text.find("rank " + std::to_string(rank) + " stopped before"),
                std::string::npos)
          << end.text;
    }
  }
}

TEST_F(Processes, name_who_is_killed_while_it_is_made_ready) {
  for (int victim = 0; victim < kRanks; ++victim) {
    SCOPED_TRACE("rank " + std::to_string(victim));
    const std::vector<End> ends = run_all([&](int rank, Plan&) {
      if (rank == victim) {
        fake_gpu().on_load = [] { return static_cast<CUresult>(::kill(::getpid(), SIGKILL)); };
      }
    });
    expect_quick(ends);
    for (int rank = 0; rank < kRanks; ++rank) {
      const End& end = ends[static_cast<std::size_t>(rank)];
      EXPECT_EQ(end.status, rank == victim ? 128 + SIGKILL : 1);
      if (rank == victim) continue;
      EXPECT_NE(end.text.find("rank " + std::to_string(victim) + " is gone"), std::string::npos)
          << end.text;
    }
  }
}

TEST_F(Processes, end_with_the_gpu_of_one_of_them) {
  const std::vector<End> ends = run_all([](int rank, Plan&) {
    fake_gpu().on_wait = wait_until_told;
    if (rank == 2) fake_gpu().on_wait = [] { return CUDA_ERROR_ILLEGAL_ADDRESS; };
  });
  expect_quick(ends);
  for (const End& end : ends) {
    EXPECT_EQ(end.status, 3);
    EXPECT_TRUE(end.text.starts_with("rank 2 lost its GPU: cuEventSynchronize: ")) << end.text;
    EXPECT_EQ(end.text.find("answers no more"), std::string::npos) << end.text;
  }
}

TEST_F(Processes, of_another_plan_are_refused_by_all) {
  const std::vector<End> ends = run_all([](int rank, Plan& plan) {
    if (rank == 2) plan = test::exchange(kRanks, 15, false);
  });
  expect_quick(ends);
  for (const End& end : ends) {
    EXPECT_EQ(end.status, 1);
    EXPECT_EQ(end.text, "rank 2 runs another plan than rank 0");
  }
}

TEST_F(Processes, hear_that_one_of_them_has_no_memory) {
  const std::vector<End> ends = run_all([](int rank, Plan&) {
    if (rank == 1) fake_gpu().allocation = CUDA_ERROR_OUT_OF_MEMORY;
  });
  expect_quick(ends);
  EXPECT_TRUE(ends[1].text.starts_with("GPU 1 has no memory left for ")) << ends[1].text;
  for (const int rank : {0, 2}) {
    const End& end = ends[static_cast<std::size_t>(rank)];
    EXPECT_EQ(end.status, 1);
    EXPECT_TRUE(end.text.starts_with("rank 1 cannot run its part of the plan: GPU 1 has no memory"))
        << end.text;
  }
}

}  // namespace
}  // namespace harpe::cuda
