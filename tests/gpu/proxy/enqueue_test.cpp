#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <thread>

#include "exec/cuda/executor/network_exchange.h"
#include "exec/cuda/jit/kernel_library.h"
#include "exec/cuda/runtime/current_device.h"
#include "exec/cuda/runtime/host_memory.h"
#include "exec/cuda/signals/signal_page.h"
#include "tests/gpu/proxy/stress_args.h"
#include "tests/support/cuda_executor.h"
#include "transport/make_provider.h"
#include "transport/proxy.h"
#include "transport/shared_memory.h"

// A kernel of many blocks puts through a proxy. Another kernel waits for each signal and checks
// that the signal's data has arrived. Both ranks use one GPU.
namespace harpe::cuda {
namespace {

using device::StressArgs;
using transport::Policy;
using transport::Ring;

constexpr std::chrono::milliseconds kLimit{60'000};
constexpr std::size_t kRingCapacity = 256;  // far fewer slots than messages in flight

// The device headers and this test's own.
const std::vector<HeaderText>& headers() {
  static constexpr const char* kName = "tests/gpu/proxy/stress_args.h";
  static const std::string text = [] {
    std::ifstream file(std::string(HARPE_SOURCE_DIR "/") + kName);
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
  }();
  static const std::vector<HeaderText> all = [] {
    std::vector<HeaderText> both(device_headers().begin(), device_headers().end());
    both.push_back({kName, text});
    return both;
  }();
  return all;
}

// A kernel in which one thread of each block runs `body`.
KernelVariant variant_of(const std::string& name, const std::string& body) {
  KernelVariant variant;
  variant.name = "test_" + name;
  variant.family = "test";
  variant.source =
      "#include \"exec/cuda/signals/device/post.cuh\"\n"
      "#include \"tests/gpu/proxy/stress_args.h\"\n"
      "using namespace harpe::device;\n"
      "extern \"C\" __global__ void __launch_bounds__(32)\n"
      "    harpe_kernel(const __grid_constant__ StressArgs args) {\n"
      "  if (threadIdx.x != 0) return;\n" +
      body + "}\n";
  variant.threads = 32;
  variant.uses_wgmma = false;
  return variant;
}

// Each block sends its messages one after another, each from a different address.
KernelVariant send_variant() {
  return variant_of("send", R"(
  for (std::uint32_t number = 1; number <= args.each; ++number) {
    const std::uint64_t at = blockIdx.x * static_cast<std::uint64_t>(args.each) + number - 1;
    for (int word = 0; word < kMessageWords; ++word) {
      args.source[at * kMessageWords + word] = number_of(blockIdx.x, number, word);
    }
    std::uint64_t words[harpe::transport::kDescriptorWords] = {};
    for (int word = 0; word <= harpe::transport::kBytesWord; ++word) {
      words[word] = args.words[word];
    }
    words[0] |= static_cast<std::uint64_t>(number) << harpe::transport::kValueAt;
    words[harpe::transport::kSourceWord] = at * kMessageBytes;
    words[harpe::transport::kDestinationWord] = args.landing_at + at * kMessageBytes;
    words[harpe::transport::kSignalWord] = blockIdx.x * kFlagBytes;
    RingAccess access(args.context, blockIdx.x);
    if (!enqueue(args.ring, words, access)) return;
  }
)");
}

// Each block waits for the signals of one sending block.
KernelVariant receive_variant() {
  return variant_of("receive", R"(
  for (std::uint32_t number = 1; number <= args.each; ++number) {
    const std::uint64_t at = blockIdx.x * static_cast<std::uint64_t>(args.each) + number - 1;
    const FlagWait wait{args.flags + blockIdx.x * (kFlagBytes / 4), 1, blockIdx.x};
    if (!poll_flag(args.context, wait, number)) return;
    for (int word = 0; word < kMessageWords; ++word) {
      const volatile std::uint64_t* const seen = args.landing + at * kMessageWords + word;
      if (*seen != number_of(blockIdx.x, number, word)) atomicAdd(args.early, 1u);
    }
  }
)");
}

// A rank's registered memory.
struct Memory {
  transport::SharedMemory shared;
  PinnedMemory pinned;

  static Checked<Memory> make(const Device& device, std::int64_t bytes) {
    constexpr std::int64_t kPage = 4096;
    HP_TRY(transport::SharedMemory shared,
           transport::SharedMemory::make((bytes + kPage - 1) / kPage * kPage));
    HP_TRY(PinnedMemory pinned, PinnedMemory::pin(device, shared.bytes()));
    return Memory{.shared = std::move(shared), .pinned = std::move(pinned)};
  }
  template <class Word>
  [[nodiscard]] Word* at(std::int64_t offset) const {
    return reinterpret_cast<Word*>(pinned.address() + static_cast<DeviceAddress>(offset));
  }
};

// The messages to send, and how.
struct Load {
  std::string provider;
  Policy policy = {};
  std::uint32_t blocks = 64;
  std::uint32_t each = 2000;

  [[nodiscard]] std::int64_t bytes() const {
    return std::int64_t{blocks} * each * device::kMessageBytes;
  }
  [[nodiscard]] std::int64_t flag_bytes() const {
    return std::int64_t{blocks} * device::kFlagBytes;
  }
};

// Both ranks' memory, and the ring from rank 0 to rank 1.
struct Room {
  Memory source;
  Memory target;  // flags, then messages
  MappedMemory rings;
  DeviceMemory heads;
  MappedMemory early;
  SignalPage page;

  static Checked<Room> make(const Device& device, const Load& load) {
    HP_TRY(Memory source, Memory::make(device, load.bytes()));
    HP_TRY(Memory target, Memory::make(device, load.flag_bytes() + load.bytes()));
    const auto bytes = static_cast<std::int64_t>(Ring::bytes_for(kRingCapacity));
    HP_TRY(MappedMemory rings, MappedMemory::allocate(device, 2 * bytes));
    HP_TRY(DeviceMemory heads, DeviceMemory::zeros(device, 64));
    HP_TRY(MappedMemory early, MappedMemory::allocate(device, sizeof(std::uint32_t)));
    HP_TRY(SignalPage page, SignalPage::create(device, {.flags = 1}));
    return Room{.source = std::move(source),
                .target = std::move(target),
                .rings = std::move(rings),
                .heads = std::move(heads),
                .early = std::move(early),
                .page = std::move(page)};
  }

  [[nodiscard]] StressArgs args(const Load& load) const {
    const transport::Words words = transport::encode(
        {.operation = transport::Operation::PutSignal, .bytes = device::kMessageBytes});
    const DeviceAddress ring = rings.address() + Ring::bytes_for(kRingCapacity);
    auto* const head = reinterpret_cast<std::uint64_t*>(heads.address());
    StressArgs args{};
    args.context = page.context(kLimit);
    args.ring = {.slots = reinterpret_cast<transport::RingSlot*>(ring),
                 .taken = reinterpret_cast<const std::uint64_t*>(
                     ring + kRingCapacity * sizeof(transport::RingSlot)),
                 .head = head,
                 .known = head + 16,
                 .capacity = kRingCapacity};
    std::copy_n(words.begin(), std::size(args.words), args.words);
    args.source = source.at<std::uint64_t>(0);
    args.flags = target.at<const std::uint32_t>(0);
    args.landing_at = static_cast<std::uint64_t>(load.flag_bytes());
    args.landing = target.at<const std::uint64_t>(load.flag_bytes());
    args.early = reinterpret_cast<std::uint32_t*>(early.address());
    args.each = load.each;
    return args;
  }
};

using Ends = std::array<std::unique_ptr<transport::Endpoint>, 2>;

// Makes a rank's endpoint. Rank 0's kernels send; rank 1 only receives.
Checked<Ok> join(const Load& load, const Room& room, int rank, MeetingPlace& place, Ends& ends) {
  HP_TRY(std::unique_ptr<transport::Provider> provider,
         transport::make_provider(load.provider, "lo"));
  const Memory& memory = rank == 0 ? room.source : room.target;
  const transport::Region regions[] = {memory.shared.region()};
  const transport::EndpointOptions options{
      .rank = rank,
      .ranks = 2,
      .policy = load.policy,
      .ring_capacity = kRingCapacity,
      .ring_memory = rank == 0 ? room.rings.host() : std::span<std::byte>(),
      .limit = kLimit};
  const auto exchange = exchange_at(place, rank);
  HP_TRY(ends[static_cast<std::size_t>(rank)],
         transport::Endpoint::make(options, std::move(provider), regions, *exchange));
  return Ok{};
}

Checked<Ends> join_both(const Load& load, const Room& room) {
  Ends ends;
  std::optional<Diag> failure;
  MeetingPlace place(2);
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        const Checked<Ok> joined = join(load, room, rank, place, ends);
        if (joined.ok()) return;
        if (joined.error().code != DiagCode::N010) failure = joined.error();
        place.leave();
      });
    }
  }
  if (failure) return *failure;
  return ends;
}

class Enqueue : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto missing = harpe::test::missing_for_gpus()) {
      GTEST_SKIP() << "skipped: " << *missing;
    }
    driver_ = open_driver().value();
    device_.emplace(Device::open(driver_, DeviceId(0)).value());
    const std::vector<std::string> folders = {"/usr/local/cuda/lib64"};
    library_ = std::make_unique<KernelLibrary>(*device_, Nvrtc::open(std::nullopt, folders).value(),
                                               harpe::test::kernel_folder(), headers());
  }

  // Counts the words of messages that had not arrived when their signal was seen.
  Checked<std::uint32_t> run(const Load& load) {
    const CurrentDevice current(*device_);
    HP_TRY(const Room room, Room::make(*device_, load));
    HP_TRY(const Ends ends, join_both(load, room));
    transport::Proxy proxy({ends[0].get(), ends[1].get()});
    HP_REQUIRE_OK(launch_both(load, room.args(load)));
    EXPECT_FALSE(room.page.fault()) << "a wait expired";
    EXPECT_FALSE(ends[0]->error());
    EXPECT_EQ(ends[0]->counters().puts, std::int64_t{load.blocks} * load.each);
    return *reinterpret_cast<const std::uint32_t*>(room.early.host().data());
  }

  std::shared_ptr<const DriverApi> driver_;
  std::optional<Device> device_;
  std::unique_ptr<KernelLibrary> library_;

 private:
  // Launches both kernels and waits for them.
  Checked<Ok> launch_both(const Load& load, StressArgs args) {
    args.context.epoch = nullptr;
    // Both are loaded first, because loading a kernel blocks while another one waits.
    std::vector<const LoadedKernel*> kernels;
    for (const KernelVariant& variant : {receive_variant(), send_variant()}) {
      HP_TRY(kernels.emplace_back(), library_->load(variant));
    }
    std::vector<Stream> streams;
    for (const LoadedKernel* const kernel : kernels) {
      HP_TRY(Stream stream, Stream::create(*device_));
      streams.push_back(std::move(stream));
      const auto launched = launch(*driver_, *kernel, LaunchShape{.grid = {load.blocks, 1, 1}},
                                   streams.back().handle(), args);
      if (!launched.ok()) return to_diag(launched.error());
    }
    for (const Stream& stream : streams) {
      const auto ended = stream.synchronize();
      if (!ended.ok()) return to_diag(ended.error());
    }
    return Ok{};
  }
};

constexpr Policy kPolicies[] = {Fence::PerPut,  Fence::PerDestination, Fence::NicOrdered,
                                Fence::Batched, Fence::OneQuiet,       Fence::Immediate};

TEST_F(Enqueue, brings_payloads_before_signals_through_shared_memory) {
  for (const Policy policy : kPolicies) {
    SCOPED_TRACE(transport::print_policy(policy));
    const auto early = run({.provider = "shared", .policy = policy});
    ASSERT_TRUE(early.ok()) << render(early.error());
    EXPECT_EQ(*early, 0U);
  }
}

TEST_F(Enqueue, brings_payloads_before_signals_over_tcp) {
  for (const Policy policy : kPolicies) {
    SCOPED_TRACE(transport::print_policy(policy));
    const auto early = run({.provider = "tcp;ofi_rxm", .policy = policy});
    const bool has_none = !early.ok() && (early.error().code == DiagCode::N001 ||
                                          early.error().code == DiagCode::N002);
    if (has_none) GTEST_SKIP() << "skipped: " << render(early.error());
    ASSERT_TRUE(early.ok()) << render(early.error());
    EXPECT_EQ(*early, 0U);
  }
}

}  // namespace
}  // namespace harpe::cuda
