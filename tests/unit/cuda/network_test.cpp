#include "exec/cuda/executor/network.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "exec/cuda/signals/device/enqueue.h"
#include "exec/cuda/target/launch_target.h"
#include "exec/describe.h"
#include "launch/make_launches.h"
#include "sync/nodes.h"
#include "tests/support/fake_driver.h"
#include "tests/support/proxy_plan.h"
#include "tests/unit/exec/plans.h"

// A plan's puts through the network, sent by host threads as kernels would. The driver has no GPU,
// and its pinned memory is plain memory.
namespace harpe::cuda {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLimit{10'000};

// State that one rank's kernels share per ring; the fake GPU has no memory for it.
struct Heads {
  std::uint64_t head = 0;
  std::uint64_t known = 0;
};

struct HostAccess {
  static std::uint64_t take(std::uint64_t* head) { return std::atomic_ref(*head).fetch_add(1); }
  static std::uint64_t load_known(std::uint64_t* known) { return *known; }
  static void store_known(std::uint64_t* known, std::uint64_t taken) { *known = taken; }
  static std::uint64_t load_taken(const std::uint64_t* taken) {
    return std::atomic_ref(*const_cast<std::uint64_t*>(taken)).load();
  }
  static void store(std::uint64_t* word, std::uint64_t value) { *word = value; }
  static void publish(std::uint64_t* word, std::uint64_t value) {
    std::atomic_ref(*word).store(value, std::memory_order_release);
  }
  static bool keep_waiting(std::uint64_t /*ticket*/, std::uint64_t /*taken*/) {
    std::this_thread::yield();
    return true;
  }
};

class Sending {
 public:
  Sending(Plan plan, NetworkOptions options)
      : plan_(std::move(plan)),
        launches_(launch::make_launches(plan_,
                                        Blocks::make(plan_.program, plan_.mesh, plan_.form).value(),
                                        LaunchTarget({}))
                      .value()),
        pages_(launches_, plan_.mesh.ranks()) {
    testing_support::fake_gpu() = {};
    const auto driver = testing_support::make_fake_driver();
    testing_support::fake_gpu().devices = static_cast<int>(plan_.mesh.ranks());
    std::vector<Device> devices;
    for (std::int64_t rank = 0; rank < plan_.mesh.ranks(); ++rank) {
      devices.push_back(Device::open(driver, DeviceId(rank)).value());
    }
    peers_.emplace(
        Peers::open({.devices = std::move(devices), .arena_bytes = 4096, .flags = 4}).value());
    std::map<TaskId, std::int64_t> bytes;
    for (const TaskId put : sync::puts_of(plan_)) bytes[put] = 1000 + put.value * 48;
    bytes_ = bytes;
    made_ = Network::open({.plan = &plan_,
                           .pages = &pages_,
                           .peers = &*peers_,
                           .put_bytes = std::move(bytes),
                           .options = std::move(options),
                           .limit = kLimit});
  }

  [[nodiscard]] const Checked<std::unique_ptr<Network>>& made() const { return *made_; }
  [[nodiscard]] const Network& network() const { return **made_.value(); }

  // A thread acts as each rank's kernels: it sends all puts and signals of each execution. As soon
  // as it sees a signal, it checks every byte of the data.
  void run(std::uint32_t executions) {
    std::vector<std::jthread> threads;
    for (std::int64_t rank = 0; rank < plan_.mesh.ranks(); ++rank) {
      threads.emplace_back([this, rank, executions] {
        for (std::uint32_t epoch = 1; epoch <= executions; ++epoch) {
          for (const launch::Launch& launch : launches_.launches) {
            if (launch.rank.value == rank && is_put_out(launch)) send(launch, epoch);
          }
          for (const launch::Launch& launch : launches_.launches) {
            if (launch.rank.value != rank || !launch.lands) continue;
            ASSERT_TRUE(land(launch, epoch))
                << "put " << launch.does.front().value << " of execution " << epoch;
          }
          meet(epoch);
        }
      });
    }
  }

 private:
  static std::uint8_t byte_of(TaskId put, std::uint32_t epoch, std::size_t at) {
    return static_cast<std::uint8_t>(static_cast<std::size_t>(put.value) * 31 + epoch * 7 + at);
  }

  [[nodiscard]] bool is_put_out(const launch::Launch& launch) const {
    return !launch.lands && sync::goes_out(plan_, launch.does.front());
  }

  void post(RankId from, launch::SignalId signal, std::uint32_t epoch) {
    device::Post post = network().post_of(static_cast<int>(from.value), signal);
    Heads& heads = heads_of(post.ring.slots);
    post.ring.head = &heads.head;
    post.ring.known = &heads.known;
    std::uint64_t words[transport::kDescriptorWords] = {};
    std::ranges::copy(post.words, words);
    words[0] |= std::uint64_t{epoch} << transport::kValueAt;
    HostAccess access;
    ASSERT_TRUE(device::enqueue(post.ring, words, access));
  }

  void send(const launch::Launch& launch, std::uint32_t epoch) {
    const TaskId put = launch.does.front();
    std::byte* const image = network().staging(put);
    for (std::size_t at = 0; at < static_cast<std::size_t>(bytes_.at(put)); ++at) {
      image[at] = std::byte{byte_of(put, epoch, at)};
    }
    for (const launch::Raise& raise : launch.raises) {
      if (pages_[raise.signal].is_posted) post(launch.rank, raise.signal, epoch);
    }
  }

  [[nodiscard]] bool land(const launch::Launch& launch, std::uint32_t epoch) const {
    const TaskId put = launch.does.front();
    const std::int32_t signal = pages_.index_of(launch.awaits.front());
    const auto* const flag = network().signal_word(static_cast<int>(launch.rank.value), signal);
    const auto end = steady_clock::now() + kLimit;
    while (std::atomic_ref(*const_cast<std::uint32_t*>(flag)).load(std::memory_order_acquire) <
           epoch) {
      if (steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    const std::byte* const image = network().landing(put);
    for (std::size_t at = 0; at < static_cast<std::size_t>(bytes_.at(put)); ++at) {
      if (image[at] != std::byte{byte_of(put, epoch, at)}) return false;
    }
    return true;
  }

  Heads& heads_of(const transport::RingSlot* slots) {
    const std::scoped_lock lock(lock_);
    return heads_[slots];
  }

  // Ends the execution on all ranks before the next begins, as credits do.
  void meet(std::uint32_t epoch) {
    const auto ranks = static_cast<std::uint64_t>(plan_.mesh.ranks());
    ++met_;
    const auto end = steady_clock::now() + kLimit;
    while (met_ < epoch * ranks && steady_clock::now() < end) std::this_thread::yield();
  }

  Plan plan_;
  launch::LaunchPlan launches_;
  SignalPages pages_;
  std::optional<Peers> peers_;
  std::map<TaskId, std::int64_t> bytes_;
  std::mutex lock_;
  std::map<const transport::RingSlot*, Heads> heads_;
  std::atomic<std::uint64_t> met_{0};
  std::optional<Checked<std::unique_ptr<Network>>> made_;
};

std::vector<Plan> plans(Fence fence) {
  return {test::by_proxy(test::push_plan(), fence),
          test::by_proxy(test::scatter_gemm(3, 12, 8, 8, "f32", false), fence)};
}

void expect_all_arrives(const std::string& provider) {
  for (const Fence fence : test::kAllFences) {
    for (const Plan& plan : plans(fence)) {
      SCOPED_TRACE(provider + " " + std::string(print(fence)) + " " + plan.program.name);
      Sending sending(plan, {.provider = provider, .interface = provider == "shared" ? "" : "lo"});
      if (!sending.made().ok() && sending.made().error().code == DiagCode::N001) GTEST_SKIP();
      ASSERT_TRUE(sending.made().ok()) << render(sending.made().error());
      constexpr std::uint32_t kExecutions = 20;
      sending.run(kExecutions);
      EXPECT_FALSE(sending.network().error());
      const auto counters = sending.network().counters();
      ASSERT_EQ(counters.size(), 1U);
      const auto puts = static_cast<std::int64_t>(sync::puts_of(plan).size());
      EXPECT_EQ(counters.at(fence).puts, puts * kExecutions);
    }
  }
}

TEST(Network, brings_puts_before_their_signals_through_shared_memory) {
  expect_all_arrives("shared");
}

TEST(Network, brings_puts_before_their_signals_over_tcp) { expect_all_arrives("tcp;ofi_rxm"); }

TEST(Network, waits_as_often_as_the_fence_says) {
  const auto quiets = [](Fence fence) {
    Sending sending(test::by_proxy(test::push_plan(), fence), {});
    sending.run(1);
    return sending.network().counters().at(fence).quiets;
  };
  EXPECT_EQ(quiets(Fence::PerPut), 8) << "one a put";
  EXPECT_EQ(quiets(Fence::PerDestination), 2) << "one a rank that is put to";
  EXPECT_EQ(quiets(Fence::NicOrdered), 0);
  EXPECT_EQ(quiets(Fence::Batched), 0);
  EXPECT_EQ(quiets(Fence::OneQuiet), 2) << "one a rank that puts";
  EXPECT_EQ(quiets(Fence::Immediate), 0);
}

TEST(Network, is_refused_with_a_provider_that_is_none) {
  const Plan plan = test::by_proxy(test::push_plan(), Fence::PerPut);
  Sending sending(plan, {.provider = "carrier_pigeon"});
  ASSERT_FALSE(sending.made().ok());
  const DiagCode code = sending.made().error().code;
  EXPECT_TRUE(code == DiagCode::N002 || code == DiagCode::N001) << render(sending.made().error());
}

}  // namespace
}  // namespace harpe::cuda
