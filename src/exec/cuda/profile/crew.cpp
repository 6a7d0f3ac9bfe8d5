#include "exec/cuda/profile/crew.h"

#include <algorithm>

#include "exec/cuda/runtime/current_device.h"
#include "ir/tensor.h"
#include "support/threads.h"

namespace harpe::cuda::profile {
namespace {

constexpr std::size_t kRounds = 7;
constexpr std::int64_t kBlockElements = std::int64_t{16} << 20;  // of random numbers, repeated

// One time per round; the first is a warm-up.
double median_of(std::vector<double> rounds) {
  rounds.erase(rounds.begin());
  const auto middle = rounds.begin() + static_cast<std::ptrdiff_t>(rounds.size() / 2);
  std::ranges::nth_element(rounds, middle);
  return *middle;
}

Checked<std::int64_t> free_bytes_of(const Device& device) {
  const CurrentDevice current(device);
  std::size_t free = 0;
  std::size_t total = 0;
  HP_REQUIRE_OK(
      driver_call(device.driver(), "cuMemGetInfo", device.driver().cuMemGetInfo(&free, &total)));
  return static_cast<std::int64_t>(free);
}

Checked<std::optional<Graph>> capture_one(const Member& member, const Order& order) {
  if (!order) return std::optional<Graph>();
  const CurrentDevice current(*member.device);
  HP_TRY(GraphCapture kept, GraphCapture::begin(*member.device, member.queue()));
  HP_REQUIRE_OK(order(member));
  HP_TRY(Graph graph, kept.end());
  HP_REQUIRE_OK(graph.upload(member.queue()));
  return std::optional<Graph>(std::move(graph));
}

}  // namespace

Diag lost_signal(int gpu, const device::FaultRecord& record) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const std::string waited = std::to_string(record.elapsed_ns / kSecond);
  return make_diag(
      DiagCode::N017,
      {{"rank", gpu}, {"reason", "it waited " + waited + " s for a signal that was not raised"}});
}

Checked<Ok> fork(const Member& member, std::size_t queues) {
  HP_TRY(const Event event, Event::create_untimed(*member.device));
  HP_REQUIRE_OK(checked(event.record(member.queue())));
  for (std::size_t i = 1; i < queues; ++i) {
    HP_REQUIRE_OK(checked(member.queue(i).wait_for(event)));
  }
  return Ok{};
}

Checked<Ok> join(const Member& member, std::size_t queues) {
  for (std::size_t i = 1; i < queues; ++i) {
    HP_TRY(const Event event, Event::create_untimed(*member.device));
    HP_REQUIRE_OK(checked(event.record(member.queue(i))));
    HP_REQUIRE_OK(checked(member.queue().wait_for(event)));
  }
  return Ok{};
}

Checked<std::unique_ptr<Crew>> Crew::open(const CrewRequest& request) {
  HP_TRY(const std::shared_ptr<const DriverApi> driver, open_driver());
  HP_TRY(const int gpus, count_devices(*driver));
  const int wanted = request.gpus == 0 ? gpus : request.gpus;
  if (wanted < 1 || wanted > gpus) {
    return make_diag(DiagCode::G070, {{"ranks", wanted}, {"gpus", gpus}});
  }
  HP_TRY(const Nvrtc compiler, Nvrtc::open(request.nvrtc, request.cuda_folders));
  std::vector<Device> devices;
  for (int rank = 0; rank < wanted; ++rank) {
    HP_TRY(Device device, Device::open(driver, DeviceId(rank)));
    devices.push_back(std::move(device));
  }
  HP_TRY(Peers opened, Peers::open({.devices = std::move(devices),
                                    .arena_bytes = kSourceBytes + kTargetBytes,
                                    .flags = kPageSignals}));
  std::unique_ptr<Crew> crew(new Crew(std::move(opened)));
  const HostTensor numbers = random_tensor(DType::BF16, {kBlockElements}, 1, "profile");
  for (int rank = 0; rank < wanted; ++rank) {
    HP_REQUIRE_OK(crew->add_member(rank, compiler, request));
    HP_REQUIRE_OK(crew->fill(crew->members_.back(), numbers.data));
  }
  return crew;
}

Checked<Ok> Crew::add_member(int rank, const Nvrtc& compiler, const CrewRequest& request) {
  Member member;
  member.rank = rank;
  member.device = &peers_.device(rank);
  member.source = peers_.arena(rank);
  member.target = member.source + static_cast<DeviceAddress>(kSourceBytes);
  const CurrentDevice current(*member.device);
  member.kernels = std::make_unique<KernelLibrary>(*member.device, compiler, request.kernel_cache);
  HP_TRY(member.signals, SignalKernels::load(*member.kernels));
  for (int queue = 0; queue <= peers_.ranks(); ++queue) {
    HP_TRY(Stream stream, Stream::create(*member.device));
    member.queues.push_back(std::move(stream));
  }
  HP_TRY(const std::int64_t free, free_bytes_of(*member.device));
  const std::int64_t all = free + kSourceBytes + kTargetBytes;
  free_bytes_ = members_.empty() ? all : std::min(free_bytes_, all);
  members_.push_back(std::move(member));
  return Ok{};
}

// Repeats the block through the whole arena.
Checked<Ok> Crew::fill(const Member& member, std::span<const std::byte> block) const {
  const CurrentDevice current(*member.device);
  const DriverApi& driver = member.device->driver();
  CUstream const stream = member.queue().handle();
  HP_REQUIRE_OK(
      driver_call(driver, "cuMemcpyHtoDAsync",
                  driver.cuMemcpyHtoDAsync(member.source, block.data(), block.size(), stream)));
  const auto all = static_cast<std::size_t>(kSourceBytes + kTargetBytes);
  for (std::size_t done = block.size(); done < all;) {
    const std::size_t next = std::min(done, all - done);
    HP_REQUIRE_OK(
        driver_call(driver, "cuMemcpyDtoDAsync",
                    driver.cuMemcpyDtoDAsync(member.source + done, member.source, next, stream)));
    done += next;
  }
  return checked(member.queue().synchronize());
}

Checked<Trial> Crew::capture(double units, const Prepare& prepare) const {
  Trial trial;
  trial.units = units;
  for (const Member& member : members_) {
    HP_TRY(Order order, prepare(member));
    HP_TRY(std::optional<Graph> graph, capture_one(member, order));
    trial.work.push_back(std::move(graph));
    trial.orders.push_back(std::move(order));
  }
  trial.background.resize(members_.size());
  return trial;
}

Checked<Ok> Crew::add_background(Trial& trial, const Prepare& prepare) const {
  HP_TRY(Trial other, capture(1, prepare));
  trial.background = std::move(other.work);
  trial.orders.insert(trial.orders.end(), std::make_move_iterator(other.orders.begin()),
                      std::make_move_iterator(other.orders.end()));
  return Ok{};
}

// One GPU's part of one turn, in seconds per unit; 0 without a part. Signals keep counting from run
// to run.
Checked<double> Crew::turn(const Trial& trial, const Member& member, const Event& begin,
                           const Event& end) const {
  const auto rank = static_cast<std::size_t>(member.rank);
  const std::optional<Graph>& background = trial.background[rank];
  const std::optional<Graph>& work = trial.work[rank];
  if (background) HP_REQUIRE_OK(checked(background->launch(member.queue(1))));
  double seconds = 0;
  if (work) {
    // The first run gives the host time to enqueue the second, however many kernels that contains.
    HP_REQUIRE_OK(checked(work->launch(member.queue())));
    HP_REQUIRE_OK(checked(begin.record(member.queue())));
    HP_REQUIRE_OK(checked(work->launch(member.queue())));
    HP_REQUIRE_OK(checked(end.record(member.queue())));
    HP_REQUIRE_OK(checked(member.queue().synchronize()));
    const Result<double, CudaError> took = end.milliseconds_since(begin);
    if (!took.ok()) return to_diag(took.error());
    seconds = *took * 1e-3 / trial.units;
  }
  HP_REQUIRE_OK(checked(member.queue(1).synchronize()));
  if (const auto record = peers_.page(member.rank).fault()) {
    return lost_signal(member.rank, *record);
  }
  return seconds;
}

// All turns of one GPU, by trial and round. A GPU that has failed still arrives at the barriers,
// because the others wait for it.
Checked<Ok> Crew::take_turns(const std::vector<Trial>& trials, const Member& member,
                             std::barrier<>& together, Times& times) {
  Checked<Ok> state = checked(member.device->make_current());
  const Checked<Event> begin = Event::create(*member.device);
  const Checked<Event> end = Event::create(*member.device);
  if (!begin.ok()) state = begin.error();
  if (!end.ok()) state = end.error();
  for (std::size_t round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < trials.size(); ++i) {
      together.arrive_and_wait();  // all have finished the previous turn
      if (state.ok()) state = peers_.page(member.rank).clear();
      together.arrive_and_wait();
      if (!state.ok()) continue;
      const Checked<double> seconds = turn(trials[i], member, *begin, *end);
      if (seconds.ok()) {
        times[i][round] = *seconds;
      } else {
        state = seconds.error();
      }
    }
  }
  return state;
}

Checked<std::vector<double>> Crew::time(const std::vector<Trial>& trials) {
  std::barrier<> together(static_cast<std::ptrdiff_t>(size()));
  std::vector<Times> times(members_.size(), Times(trials.size(), std::vector<double>(kRounds)));
  std::vector<Checked<Ok>> results(members_.size(), Ok{});
  run_in_threads(members_.size(), [&](std::size_t rank) {
    results[rank] = take_turns(trials, members_[rank], together, times[rank]);
  });
  for (Checked<Ok>& result : results) HP_REQUIRE_OK(std::move(result));
  std::vector<double> medians;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    std::vector<double> slowest(kRounds, 0);
    for (const Times& own : times) {
      std::ranges::transform(slowest, own[i], slowest.begin(),
                             [](double a, double b) { return std::max(a, b); });
    }
    medians.push_back(median_of(std::move(slowest)));
  }
  return medians;
}

}  // namespace harpe::cuda::profile
