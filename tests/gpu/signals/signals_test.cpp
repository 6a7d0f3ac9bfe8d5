#include <array>

#include "tests/gpu/signals/rig.h"

namespace harpe::cuda::signals_test {
namespace signals_test {

constexpr std::int64_t kReplays = 5000;

WorkOptions usual(int /*rank*/) { return {}; }

std::string tell(const device::FaultRecord& record) {
  return "signal " + std::to_string(record.name) + " of task " + std::to_string(record.task) +
         " was to be " + std::to_string(record.expected) + " and is " +
         std::to_string(record.seen) + " after " + std::to_string(record.elapsed_ns) + " ns";
}

class Signals : public OnGpus {
 protected:
  // Replays `times` epochs and expects that all succeed.
  void expect_right(Rig& rig, Checked<Ok> (RankWork::*capture)(), std::int64_t times) {
    Checked<std::vector<RankWork>> works = rig.works(capture, usual);
    ASSERT_TRUE(works.ok()) << render(works.error());
    const Checked<Ok> done = Rig::replay(*works, times);
    ASSERT_TRUE(done.ok()) << render(done.error());
    for (int rank = 0; rank < rig.peers().ranks(); ++rank) {
      SCOPED_TRACE("rank " + std::to_string(rank));
      const auto fault = rig.peers().page(rank).fault();
      EXPECT_FALSE(fault.has_value()) << tell(*fault);
      const Checked<bool> poisoned = rig.peers().page(rank).is_poisoned();
      ASSERT_TRUE(poisoned.ok()) << render(poisoned.error());
      EXPECT_FALSE(*poisoned);
      const auto wrong = (*works)[static_cast<std::size_t>(rank)].wrong_words();
      ASSERT_TRUE(wrong.ok()) << render(wrong.error());
      EXPECT_EQ(*wrong, 0U);
    }
  }

  void expect_right(int ranks, Checked<Ok> (RankWork::*capture)(), std::int64_t times) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    const auto rig = Rig::build(tools(), ranks);
    ASSERT_TRUE(rig.ok()) << render(rig.error());
    expect_right(**rig, capture, times);
  }
};

TEST_F(Signals, order_a_ring_of_copies) {
  for (const int ranks : rank_counts()) {
    expect_right(ranks, &RankWork::capture_ring, kReplays);
  }
}

TEST_F(Signals, count_all_ranks_at_barriers) {
  for (const int ranks : rank_counts()) {
    expect_right(ranks, &RankWork::capture_barriers, kReplays);
  }
}

TEST_F(Signals, hold_where_epochs_wrap) {
  for (const int ranks : rank_counts()) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    const auto rig = Rig::build(tools(), ranks);
    ASSERT_TRUE(rig.ok()) << render(rig.error());
    const auto all = static_cast<std::uint32_t>(ranks);
    const std::array<std::uint32_t, kSignals> arrivals = {1, 1, all, all};
    for (const auto capture : {&RankWork::capture_ring, &RankWork::capture_barriers}) {
      for (int rank = 0; rank < ranks; ++rank) {
        const auto started = (*rig)->peers().page(rank).start_at(0xffffffffU - 100, arrivals);
        ASSERT_TRUE(started.ok()) << render(started.error());
      }
      expect_right(**rig, capture, 300);
    }
  }
}

// Rank 0 puts its data and never signals. Rank 1 has the shortest limit and waits for the signal.
TEST_F(Signals, that_never_come_end_every_rank_and_leave_a_record) {
  constexpr auto kLimit = 300ms;
  for (const int ranks : rank_counts()) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    const auto rig = Rig::build(tools(), ranks);
    ASSERT_TRUE(rig.ok()) << render(rig.error());
    Peers& peers = (*rig)->peers();
    auto works = (*rig)->works(&RankWork::capture_ring, [&](int rank) {
      return WorkOptions{.limit = rank == 1 ? kLimit : 4 * kLimit,
                         .says_that_data_is_there = rank != 0};
    });
    ASSERT_TRUE(works.ok()) << render(works.error());
    const auto start = std::chrono::steady_clock::now();
    const Checked<Ok> done = Rig::replay(*works, 100);
    ASSERT_TRUE(done.ok()) << render(done.error());
    EXPECT_LT(std::chrono::steady_clock::now() - start, kLimit + 2s);

    const auto fault = peers.page(1).fault();
    ASSERT_TRUE(fault.has_value());
    EXPECT_EQ(fault->name, static_cast<std::uint32_t>(kData));
    EXPECT_EQ(fault->expected, 1U);
    EXPECT_EQ(fault->seen, 0U);
    EXPECT_EQ(fault->task, 2U);
    EXPECT_GE(std::chrono::nanoseconds(fault->elapsed_ns), kLimit);
    for (int rank = 0; rank < ranks; ++rank) {
      SCOPED_TRACE("rank " + std::to_string(rank));
      EXPECT_TRUE(*peers.page(rank).is_poisoned());
      EXPECT_EQ(peers.page(rank).fault().has_value(), rank == 1);
      ASSERT_TRUE(peers.page(rank).clear().ok());
      EXPECT_FALSE(*peers.page(rank).is_poisoned());
      EXPECT_FALSE(peers.page(rank).fault().has_value());
    }
    expect_right(**rig, &RankWork::capture_ring, 200);
  }
}

TEST_F(Signals, are_more_than_one_launch_holds) {
  const auto rig = Rig::build(tools(), 1);
  ASSERT_TRUE(rig.ok()) << render(rig.error());
  const Device& device = (*rig)->peers().device(0);
  KernelLibrary library(device, tools().compiler, cache_folder());
  const auto kernels = SignalKernels::load(library);
  ASSERT_TRUE(kernels.ok()) << render(kernels.error());
  constexpr int kMany = 100;
  const auto page = SignalPage::create(device, {.flags = kMany});
  const auto stream = Stream::create(device);
  ASSERT_TRUE(page.ok() && stream.ok());
  std::vector<device::RaiseTarget> targets;
  std::vector<device::SignalWait> waits;
  for (int index = 0; index < kMany; ++index) {
    targets.push_back(flag_of(page->addresses(), index));
    waits.push_back(wait_on(page->addresses(), index));
  }
  targets.pop_back();
  ASSERT_TRUE(device.make_current().ok());
  ASSERT_TRUE(kernels->begin_epoch(*stream, page->addresses(), page->context(50ms)).ok());
  ASSERT_TRUE(kernels->raise(*stream, page->addresses(), targets).ok());
  ASSERT_TRUE(kernels->await(*stream, page->context(50ms), waits).ok());
  ASSERT_TRUE(stream->synchronize().ok());
  const auto fault = page->fault();
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->name, kMany - 1U);
}

TEST_F(Signals, of_peers_that_are_not_there_are_refused) {
  const auto gpus = count_devices(*tools().driver);
  ASSERT_TRUE(gpus.ok());
  const auto beyond = Device::open(tools().driver, DeviceId(*gpus));
  ASSERT_FALSE(beyond.ok());
  EXPECT_EQ(beyond.error().code, DiagCode::G007);
  const auto device = Device::open(tools().driver, DeviceId(0));
  ASSERT_TRUE(device.ok()) << render(device.error());
  const auto large = Peers::open(
      {.devices = {*device, *device}, .arena_bytes = std::int64_t{1} << 40, .flags = 1});
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.error().code, DiagCode::G073);
}

using Graphs = OnGpus;

TEST_F(Graphs, refuse_a_stream_that_is_not_joined_and_free_the_origin) {
  const auto device = Device::open(tools().driver, DeviceId(0));
  ASSERT_TRUE(device.ok()) << render(device.error());
  const auto origin = Stream::create(*device);
  const auto other = Stream::create(*device);
  const auto fork = Event::create_untimed(*device);
  const auto memory = DeviceMemory::zeros(*device, 16);
  ASSERT_TRUE(origin.ok() && other.ok() && fork.ok() && memory.ok());
  const auto set = [&](const Stream& stream) {
    return device->driver().cuMemsetD32Async(memory->address(), 7, 16, stream.handle());
  };
  {
    auto capture = GraphCapture::begin(*device, *origin);
    ASSERT_TRUE(capture.ok()) << render(capture.error());
    ASSERT_TRUE(fork->record(*origin).ok());
    ASSERT_TRUE(other->wait_for(*fork).ok());
    ASSERT_EQ(set(*other), CUDA_SUCCESS);
    const auto graph = capture->end();
    ASSERT_FALSE(graph.ok());
    EXPECT_EQ(graph.error().code, DiagCode::G005);
  }
  {
    const auto given_up = GraphCapture::begin(*device, *origin);
    ASSERT_TRUE(given_up.ok()) << render(given_up.error());
  }
  auto capture = GraphCapture::begin(*device, *origin);
  ASSERT_TRUE(capture.ok()) << render(capture.error());
  ASSERT_EQ(set(*origin), CUDA_SUCCESS);
  const auto graph = capture->end();
  ASSERT_TRUE(graph.ok()) << render(graph.error());
  EXPECT_EQ(graph->nodes(), 1);
  ASSERT_TRUE(graph->launch(*origin).ok());
  EXPECT_TRUE(origin->synchronize().ok());
}

}  // namespace signals_test
}  // namespace harpe::cuda::signals_test
