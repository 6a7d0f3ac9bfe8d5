#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "exec/processes/launch_environment.h"
#include "tests/gpu/signals/rig.h"
#include "transport/rendezvous.h"

extern "C" char** environ;

namespace harpe::cuda::signals_test {
namespace {

std::optional<std::string> variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

constexpr const char* kReplays = "HARPE_TEST_REPLAYS";

// A GPU shared by processes switches between them only every few milliseconds.
std::int64_t replays_of(int ranks, int gpus) { return ranks <= gpus ? 5000 : 100; }

// Starts this program as one rank of the test below; none if it does not start.
std::optional<pid_t> start_rank(int rank, int ranks, const std::string& port,
                                std::int64_t replays) {
  std::vector<std::string> words = {"gpu_signals", "--gtest_also_run_disabled_tests",
                                    "--gtest_filter=Processes.DISABLED_are_one_rank_each"};
  std::vector<std::string> settings = {"RANK=" + std::to_string(rank),
                                       "WORLD_SIZE=" + std::to_string(ranks),
                                       "LOCAL_RANK=" + std::to_string(rank),
                                       "MASTER_ADDR=127.0.0.1",
                                       "MASTER_PORT=" + port,
                                       kReplays + ("=" + std::to_string(replays))};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::vector<char*> environment;
  for (std::string& setting : settings) environment.push_back(setting.data());
  for (char** each = environ; *each != nullptr; ++each) environment.push_back(*each);
  environment.push_back(nullptr);
  pid_t child = 0;
  const int status = ::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments.data(),
                                   environment.data());
  if (status != 0) return std::nullopt;
  return child;
}

}  // namespace

class Processes : public OnGpus {};

// One rank under a launcher: `torchrun`, `mpirun` or `srun` runs this program with the filter
// Processes.DISABLED_are_one_rank_each, or the test below starts it.
TEST_F(Processes, DISABLED_are_one_rank_each) {
  const auto launch = processes::find_launch(variable);
  ASSERT_TRUE(launch.ok()) << launch.error().variable << " " << launch.error().reason;
  ASSERT_TRUE(launch->has_value()) << "no launcher started this";
  const processes::Launch& self = **launch;
  const auto bootstrap = transport::Rendezvous::meet(
      {.address = self.address, .rank = self.rank, .ranks = self.ranks});
  ASSERT_TRUE(bootstrap.ok()) << render(bootstrap.error());
  const auto gpus = count_devices(*tools().driver);
  ASSERT_TRUE(gpus.ok());
  const auto device = Device::open(tools().driver, DeviceId(self.local_rank % *gpus));
  ASSERT_TRUE(device.ok()) << render(device.error());
  auto peers =
      Peers::join({.device = *device, .arena_bytes = kArenaBytes, .flags = kSignals}, **bootstrap);
  ASSERT_TRUE(peers.ok()) << render(peers.error());
  KernelLibrary library(peers->device(self.rank), tools().compiler, cache_folder());
  const auto kernels = Kernels::load(library);
  ASSERT_TRUE(kernels.ok()) << render(kernels.error());
  {
    auto work = RankWork::create(*peers, self.rank, *kernels, {.limit = 10s});
    ASSERT_TRUE(work.ok()) << render(work.error());
    const std::int64_t replays =
        std::stoll(variable(kReplays).value_or(std::to_string(replays_of(self.ranks, *gpus))));
    for (const auto capture : {&RankWork::capture_ring, &RankWork::capture_barriers}) {
      const auto captured = ((*work).*capture)();
      ASSERT_TRUE(captured.ok()) << render(captured.error());
      // No rank may clear its page while another rank still writes to it.
      ASSERT_TRUE(peers->page(self.rank).clear().ok());
      ASSERT_TRUE((*bootstrap)->all_gather({}).ok());
      const auto done = work->replay(replays);
      ASSERT_TRUE(done.ok()) << render(done.error());
      ASSERT_TRUE((*bootstrap)->all_gather({}).ok());
      EXPECT_FALSE(peers->page(self.rank).fault().has_value());
      EXPECT_FALSE(*peers->page(self.rank).is_poisoned());
    }
    const auto wrong = work->wrong_words();
    ASSERT_TRUE(wrong.ok()) << render(wrong.error());
    EXPECT_EQ(*wrong, 0U);
  }
  const auto left = peers->leave(**bootstrap);
  EXPECT_TRUE(left.ok()) << render(left.error());
}

TEST_F(Processes, order_rings_and_barriers_between_them) {
  const auto gpus = count_devices(*tools().driver);
  ASSERT_TRUE(gpus.ok());
  const int ranks = std::max(2, std::min(*gpus, 8));
  const std::string port = std::to_string(20000 + ::getpid() % 20000);
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto child = start_rank(rank, ranks, port, replays_of(ranks, *gpus));
    ASSERT_TRUE(child.has_value());
    children.push_back(*child);
  }
  for (std::size_t rank = 0; rank < children.size(); ++rank) {
    int status = 0;
    ASSERT_EQ(::waitpid(children[rank], &status, 0), children[rank]);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "rank " << rank;
  }
}

}  // namespace harpe::cuda::signals_test
