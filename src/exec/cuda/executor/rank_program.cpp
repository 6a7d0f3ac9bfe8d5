#include "exec/cuda/executor/rank_program.h"

#include <algorithm>

#include "support/check.h"

namespace harpe::cuda {
namespace {

using launch::LaunchId;

constexpr std::uint32_t kMostDelayNs = 20'000;

bool is_kernel(const launch::Kernel& kernel) {
  return kernel.name != "copy_engine" && kernel.name != "nccl";
}

// Whether the launch ends with a kernel, whose end the next kernel may overlap.
bool ends_with_kernel(const launch::Launch& launch) {
  if (!launch.raises.empty()) return !launch.raised_by_engine;
  return launch.kernels.empty() ? launch.begins_epoch : is_kernel(launch.kernels.back());
}

}  // namespace

device::FlagWait wait_for(const Peers& peers, const Network* network, const SignalPages& pages,
                          launch::SignalId id) {
  const launch::Signal& signal = pages[id];
  const auto rank = static_cast<int>(signal.rank.value);
  const std::int32_t index = pages.index_of(id);
  device::FlagWait wait =
      wait_on(peers.signals(rank), index, static_cast<std::uint32_t>(signal.arrivals)).wait;
  if (signal.is_posted) wait.flag = network->signal_word(rank, index);
  return wait;
}

device::RaiseTarget target_of(const Peers& peers, const SignalPages& pages,
                              const launch::Raise& raise) {
  const auto rank = static_cast<int>(pages[raise.signal].rank.value);
  return target_of(peers.signals(rank), pages.index_of(raise.signal), raise.adds);
}

Checked<RankProgram> RankProgram::make(int rank, Parts parts) {
  const Device& device = parts.peers->device(rank);
  HP_TRY(Stream aside, Stream::create(device, true));
  RankProgram program(rank, std::move(parts), std::move(aside));
  program.origin_ = program.queue_of_boundaries();
  const auto add_event = [&](auto& events, const auto& key) -> Checked<Ok> {
    if (events.contains(key)) return Ok{};
    HP_TRY(Event event, Event::create_untimed(device));
    events.emplace(key, std::move(event));
    return Ok{};
  };
  for (std::size_t at = 0; at < program.parts_.launches.size(); ++at) {
    const launch::Launch& launch = program.launch_of(program.parts_.launches[at].id);
    if (launch.bounds_epoch) program.bounding_ = at;
    const QueueId queue = program.queue_of(launch);
    if (!program.streams_.contains(queue)) {
      HP_TRY(Stream stream, Stream::create(device));
      program.streams_.emplace(queue, std::move(stream));
    }
    HP_REQUIRE_OK(add_event(program.ends_, queue));
    for (const LaunchId from : launch.after) HP_REQUIRE_OK(add_event(program.over_, from));
    for (const LaunchId from : launch.begun) HP_REQUIRE_OK(add_event(program.begun_, from));
  }
  return program;
}

QueueId RankProgram::queue_of_boundaries() const {
  QueueId own;
  std::optional<QueueId> first;
  for (const PreparedLaunch& prepared : parts_.launches) {
    const launch::Launch& launch = launch_of(prepared.id);
    if (launch.begins_epoch) own = launch.queue;
    if (is_boundary(launch)) continue;
    if (launch.queue == own) return own;
    if (!first && ends_with_kernel(launch)) first = launch.queue;
  }
  HP_CHECK(own.valid(), "every rank has an Entry");
  return first.value_or(own);
}

QueueId RankProgram::queue_of(const launch::Launch& launch) const {
  const bool has_one_queue = bounding_.has_value();  // the proof assumes one queue
  return is_boundary(launch) || has_one_queue ? origin_ : launch.queue;
}

Checked<Ok> RankProgram::warm_up() const {
  const auto order_first = [&]() -> Result<Ok, CudaError> {
    for (const PreparedLaunch& launch : parts_.launches) {
      if (launch.work.meets_others()) HP_REQUIRE_OK(launch.work.enqueue(origin().handle()));
    }
    return origin().synchronize();
  };
  const Result<Ok, CudaError> done = order_first();
  if (!done.ok()) return to_diag(done.error());
  return Ok{};
}

Checked<Ok> RankProgram::capture(std::chrono::nanoseconds limit) {
  if (!is_one_kernel()) {
    HP_TRY(graph_, capture_graph({.limit = limit}));
  }
  if (!parts_.trace) return Ok{};
  HP_TRY(traced_, capture_graph({.limit = limit, .trace = &*parts_.trace}));
  return Ok{};
}

void RankProgram::free_streams() {
  ends_.clear();
  over_.clear();
  begun_.clear();
  streams_.clear();
}

Result<Ok, CudaError> RankProgram::give_up() const {
  return parts_.peers->page(rank_).give_up(aside_);
}

Checked<Graph> RankProgram::capture_graph(const Pass& pass) const {
  HP_TRY(const CapturedGraph captured, capture_pass(pass));
  HP_TRY(Graph graph, captured.instantiate());
  HP_REQUIRE_OK(graph.upload(origin()));
  return graph;
}

Checked<CapturedGraph> RankProgram::capture_pass(const Pass& pass) const {
  HP_TRY(GraphCapture capture, GraphCapture::begin(device(), origin()));
  const Result<Ok, CudaError> ordered = order_all(pass);
  if (!ordered.ok()) return to_diag(ordered.error());
  return capture.end_captured();
}

Result<Ok, CudaError> RankProgram::order_zeros() const {
  if (!parts_.zero_first || parts_.zero_first->bytes == 0) return Ok{};
  const DriverApi& driver = device().driver();
  const DeviceAddress at =
      parts_.peers->arena(rank_) + static_cast<DeviceAddress>(parts_.zero_first->offset);
  const auto bytes = static_cast<std::size_t>(parts_.zero_first->bytes);
  return cuda_call(driver, "cuMemsetD8Async",
                   driver.cuMemsetD8Async(at, 0, bytes, origin().handle()));
}

Result<Ok, CudaError> RankProgram::order_all(const Pass& pass) const {
  HP_REQUIRE_OK(order_zeros());
  if (bounding_ && pass.trace == nullptr) return order_bounding(*bounding_, pass);
  if (pass.trace != nullptr) HP_REQUIRE_OK(pass.trace->begin(origin()));
  for (std::size_t index = 0; index < parts_.launches.size(); ++index) {
    HP_REQUIRE_OK(order(index, pass));
  }
  return join_queues();
}

bool RankProgram::is_one_kernel() const {
  const bool is_disturbed = parts_.delay_seed || parts_.stray_at;
  if (!bounding_ || parts_.zero_first || is_disturbed) return false;
  const auto does_nothing = [&](const PreparedLaunch& other) {
    const launch::Launch& launch = launch_of(other.id);
    return other.work.size() == 0 && (is_boundary(launch) || launch.awaits.empty());
  };
  return std::ranges::all_of(parts_.launches, [&](const PreparedLaunch& each) {
    return &each == &parts_.launches[*bounding_] || does_nothing(each);
  });
}

Result<Ok, CudaError> RankProgram::replay(const Stream& stream) const {
  if (is_one_kernel()) return parts_.launches[*bounding_].work.enqueue(stream.handle());
  return graph_->launch(stream);
}

Result<Ok, CudaError> RankProgram::order_bounding(std::size_t index, const Pass& pass) const {
  const bool has_zeros = parts_.zero_first && parts_.zero_first->bytes > 0;
  HP_CHECK(!has_zeros, "kernels that count rows bound no execution");
  const auto is_stood_for = [&](std::size_t i) {
    const launch::Launch& launch = launch_of(parts_.launches[i].id);
    return i == index || is_boundary(launch);
  };
  for (std::size_t i = 0; i < parts_.launches.size(); ++i) {
    if (is_stood_for(i)) HP_REQUIRE_OK(order_disturbance(place_of(i, pass)));
  }
  HP_REQUIRE_OK(parts_.launches[index].work.enqueue(origin().handle()));
  for (std::size_t i = 0; i < parts_.launches.size(); ++i) {
    if (!is_stood_for(i)) HP_REQUIRE_OK(order(i, pass));
  }
  return Ok{};
}

// A captured stream must join the origin before the capture ends.
Result<Ok, CudaError> RankProgram::join_queues() const {
  for (const auto& [queue, end] : ends_) {
    if (queue == origin_) continue;
    HP_REQUIRE_OK(end.record(streams_.at(queue)));
    HP_REQUIRE_OK(origin().wait_for(end));
  }
  return Ok{};
}

RankProgram::Place RankProgram::place_of(std::size_t index, const Pass& pass) const {
  const launch::Launch& launch = launch_of(parts_.launches[index].id);
  return {.index = index,
          .launch = &launch,
          .stream = &streams_.at(queue_of(launch)),
          .context = parts_.peers->page(rank_).context(
              pass.limit, static_cast<std::uint32_t>(launch.does.front().value)),
          .trace = pass.trace};
}

Result<Ok, CudaError> RankProgram::order(std::size_t index, const Pass& pass) const {
  const LaunchId id = parts_.launches[index].id;
  const launch::Launch& launch = launch_of(id);
  const Place place = place_of(index, pass);
  const Stream& stream = *place.stream;
  HP_REQUIRE_OK(order_waits(place));
  const auto begun = begun_.find(id);
  if (begun != begun_.end()) HP_REQUIRE_OK(begun->second.record(stream));
  HP_REQUIRE_OK(order_work(place));
  if (!is_boundary(launch)) {
    const Raises raises = kept(launch, launch.raises);
    HP_REQUIRE_OK(launch.raised_by_engine ? raise_by_engine(raises, stream)
                                          : raise(raises, place, is_behind_own_kernels(place)));
  }
  const auto over = over_.find(id);
  return over == over_.end() ? Result<Ok, CudaError>(Ok{}) : over->second.record(stream);
}

bool RankProgram::is_boundary(const launch::Launch& launch) const {
  return launch.begins_epoch ||
         parts_.plan->tasks[launch.does.front().index()].kind == TaskKind::Exit;
}

bool RankProgram::may_wait(const launch::Launch& launch) const {
  return launch.all_ready || !launch.awaits.empty() || !launch.begun.empty() ||
         !std::ranges::all_of(launch.after,
                              [&](LaunchId from) { return launch_of(from).begins_epoch; });
}

Result<Ok, CudaError> RankProgram::order_waits(const Place& place) const {
  const launch::Launch& launch = *place.launch;
  // A queue joins the capture behind its rank's Entry, so it has no timestamp before that.
  for (const bool entries : {true, false}) {
    for (const LaunchId from : launch.after) {
      if (launch_of(from).begins_epoch != entries) continue;
      if (queue_of(launch_of(from)) == queue_of(launch)) continue;  // the stream orders them
      HP_REQUIRE_OK(place.stream->wait_for(over_.at(from)));
    }
    if (entries && may_wait(launch)) HP_REQUIRE_OK(stamp(place, Moment::Reached));
  }
  for (const LaunchId from : launch.begun) {
    HP_REQUIRE_OK(place.stream->wait_for(begun_.at(from)));
  }
  return is_one_turn(place) ? Result<Ok, CudaError>(Ok{}) : await(launch.awaits, place);
}

Result<Ok, CudaError> RankProgram::order_disturbance(const Place& place) const {
  const Stream& stream = *place.stream;
  if (parts_.delay_seed) {
    const std::uint32_t seed =
        *parts_.delay_seed + place.context.task * 64 + static_cast<std::uint32_t>(rank_);
    HP_REQUIRE_OK(parts_.kernels.linger(stream, parts_.peers->signals(rank_), seed, kMostDelayNs));
  }
  if (parts_.stray_at && std::ranges::count(place.launch->does, *parts_.stray_at) > 0) {
    HP_REQUIRE_OK(parts_.kernels.stray(stream));
  }
  return Ok{};
}

Result<Ok, CudaError> RankProgram::order_work(const Place& place) const {
  const launch::Launch& launch = *place.launch;
  HP_REQUIRE_OK(order_disturbance(place));
  if (is_boundary(launch)) {
    HP_REQUIRE_OK(stamp(place, Moment::Start));
    return order_turn(place);
  }
  HP_REQUIRE_OK(raise(kept(launch, launch.ready), place));
  if (launch.all_ready) HP_REQUIRE_OK(await({*launch.all_ready}, place));
  HP_REQUIRE_OK(stamp(place, Moment::Start));
  HP_REQUIRE_OK(order_kernels(place));
  HP_REQUIRE_OK(raise(kept(launch, launch.pulled), place, is_behind_own_kernels(place)));
  if (!launch.all_pulled) return Ok{};
  HP_REQUIRE_OK(await({*launch.all_pulled}, place));
  return stamp(place, Moment::End);
}

bool RankProgram::is_behind_own_kernels(const Place& place) const {
  return place.trace == nullptr && parts_.launches[place.index].work.size() > 0 &&
         is_kernel(place.launch->kernels.back());
}

bool RankProgram::is_behind_kernel(const Place& place) const {
  const auto is_here = [&](LaunchId from) {
    return queue_of(launch_of(from)) == queue_of(*place.launch);
  };
  if (!std::ranges::all_of(place.launch->after, is_here)) return false;
  for (std::size_t before = place.index; before-- > 0;) {
    const LaunchId id = parts_.launches[before].id;
    if (is_here(id)) return ends_with_kernel(launch_of(id));
  }
  return false;
}

bool RankProgram::is_one_turn(const Place& place) const {
  return is_boundary(*place.launch) && place.trace == nullptr;
}

// Without signals, no kernel counts epochs and no wait can fail.
bool RankProgram::has_signals() const {
  return !parts_.launch_plan->signals.empty() || parts_.trace || parts_.delay_seed;
}

Result<Ok, CudaError> RankProgram::order_turn(const Place& place) const {
  if (!has_signals()) return Ok{};
  const launch::Launch& launch = *place.launch;
  std::vector<device::SignalWait> waits;
  if (is_one_turn(place)) waits = waits_on(launch.awaits);
  const Raises raises = kept(launch, launch.raises);
  const std::vector<device::RaiseTarget> targets = targets_of(raises);
  const bool counts = launch.begins_epoch;
  if (counts || parts_.zero_first || !waits.empty() || !targets.empty()) {
    HP_REQUIRE_OK(
        parts_.kernels.turn(*place.stream, parts_.peers->signals(rank_), place.context,
                            {.waits = waits,
                             .counts_epoch = counts,
                             .targets = targets,
                             .begins_early = is_one_turn(place) && is_behind_kernel(place)}));
  }
  return post(raises, place);
}

Result<Ok, CudaError> RankProgram::order_kernels(const Place& place) const {
  const PreparedLaunch& prepared = parts_.launches[place.index];
  const Launches& work = place.trace != nullptr ? prepared.traced_work : prepared.work;
  if (work.size() == 0) return Ok{};
  HP_REQUIRE_OK(work.enqueue(place.stream->handle()));
  if (place.launch->all_pulled) return Ok{};
  return stamp(place, Moment::End);
}

Result<Ok, CudaError> RankProgram::stamp(const Place& place, Moment moment) {
  if (place.trace == nullptr) return Ok{};
  return place.trace->stamp(*place.stream, place.index, moment);
}

// Copies the epoch into the flags, behind the stream's earlier copies; needs no SM. A poisoned rank
// raises its flags too; this is harmless, because the execution has failed anyway.
Result<Ok, CudaError> RankProgram::raise_by_engine(const Raises& raises,
                                                   const Stream& stream) const {
  const DriverApi& driver = device().driver();
  const DeviceAddress epoch = parts_.peers->signals(rank_).epoch();
  for (const launch::Raise& raise : raises) {
    const device::RaiseTarget target = target_of(*parts_.peers, *parts_.pages, raise);
    HP_REQUIRE_OK(cuda_call(driver, "cuMemcpyAsync",
                            driver.cuMemcpyAsync(reinterpret_cast<DeviceAddress>(target.word),
                                                 epoch, sizeof(std::uint32_t), stream.handle())));
  }
  return Ok{};
}

RankProgram::Raises RankProgram::kept(const launch::Launch& launch, Raises raises) const {
  const auto lost = parts_.drop_signal_of;
  if (!lost || std::ranges::find(launch.does, *lost) == launch.does.end()) return raises;
  std::erase_if(raises, [&](const launch::Raise& raise) {
    const launch::Signal& signal = (*parts_.pages)[raise.signal];
    const bool is_of_task =
        launch.does.size() == 1 || std::ranges::find(signal.from, *lost) != signal.from.end();
    return is_of_task && signal.rank != RankId(rank_);
  });
  return raises;
}

Result<Ok, CudaError> RankProgram::raise(const Raises& raises, const Place& place,
                                         bool is_behind) const {
  const std::vector<device::RaiseTarget> targets = targets_of(raises);
  if (!targets.empty()) {
    HP_REQUIRE_OK(
        parts_.kernels.raise(*place.stream, parts_.peers->signals(rank_), targets, is_behind));
  }
  return post(raises, place);
}

Result<Ok, CudaError> RankProgram::post(const Raises& raises, const Place& place) const {
  std::vector<device::Post> posts;
  for (const launch::Raise& raise : raises) {
    if (!(*parts_.pages)[raise.signal].is_posted) continue;
    posts.push_back(parts_.network->post_of(rank_, raise.signal));
  }
  if (posts.empty()) return Ok{};
  return parts_.kernels.post(*place.stream, place.context, posts);
}

std::vector<device::RaiseTarget> RankProgram::targets_of(const Raises& raises) const {
  std::vector<device::RaiseTarget> targets;
  targets.reserve(raises.size());
  for (const launch::Raise& raise : raises) {
    if ((*parts_.pages)[raise.signal].is_posted) continue;
    targets.push_back(target_of(*parts_.peers, *parts_.pages, raise));
  }
  return targets;
}

Result<Ok, CudaError> RankProgram::await(const std::vector<launch::SignalId>& signals,
                                         const Place& place) const {
  if (signals.empty()) return Ok{};
  return parts_.kernels.await(*place.stream, place.context, waits_on(signals));
}

std::vector<device::SignalWait> RankProgram::waits_on(
    const std::vector<launch::SignalId>& signals) const {
  std::vector<device::SignalWait> waits;
  waits.reserve(signals.size());
  for (const launch::SignalId signal : signals) {
    const device::FlagWait wait = wait_for(*parts_.peers, parts_.network, *parts_.pages, signal);
    waits.push_back({.wait = wait, .epochs_back = 0});
  }
  return waits;
}

}  // namespace harpe::cuda
