#include "exec/cuda/executor/rank_program.h"

#include <algorithm>
#include <set>

#include "support/check.h"

namespace harpe::cuda {
namespace {

constexpr std::uint32_t kMostDelayNs = 20'000;

}  // namespace

device::FlagWait wait_for(const Peers& peers, const Network* network, int rank, std::int32_t index,
                          const PageSignal& signal) {
  device::FlagWait wait =
      wait_on(peers.signals(rank), index, static_cast<std::uint32_t>(signal.arrivals)).wait;
  if (signal.is_posted) wait.flag = network->signal_word(rank, index);
  return wait;
}

Checked<RankProgram> RankProgram::make(int rank, Parts parts) {
  const Device& device = parts.peers->device(rank);
  HP_TRY(Stream aside, Stream::create(device, true));
  RankProgram program(rank, std::move(parts), std::move(aside));
  std::vector<TaskId> tasks;
  for (const Unit& unit : program.parts_.units) {
    tasks.insert(tasks.end(), unit.tasks.begin(), unit.tasks.end());
  }
  for (const TaskId task : tasks) {
    const QueueId queue = program.queue_of(task);
    if (!program.streams_.contains(queue)) {
      HP_TRY(Stream stream, Stream::create(device));
      program.streams_.emplace(queue, std::move(stream));
      HP_TRY(Event end, Event::create_untimed(device));
      program.ends_.emplace(queue, std::move(end));
    }
    if (program.parts_.plan->tasks[task.index()].kind == TaskKind::Entry) program.origin_ = queue;
  }
  HP_CHECK(program.origin_.valid(), "every rank has an Entry");
  const auto add_event = [&](TaskId task) -> Checked<Ok> {
    if (program.events_.contains(task)) return Ok{};
    HP_TRY(Event event, Event::create_untimed(device));
    program.events_.emplace(task, std::move(event));
    return Ok{};
  };
  for (const TaskId task : tasks) {
    for (const TaskId from : program.wiring_of(task).after) HP_REQUIRE_OK(add_event(from));
  }
  for (const Unit& unit : program.parts_.units) {
    for (const TaskId task : unit.behind) {
      HP_TRY(Event event, Event::create_untimed(device));
      program.arrived_.emplace(task, std::move(event));
    }
  }
  return program;
}

Checked<Ok> RankProgram::warm_up() const {
  const auto order_first = [&]() -> Result<Ok, CudaError> {
    for (const Unit& unit : parts_.units) {
      if (unit.work.meets_others()) HP_REQUIRE_OK(unit.work.enqueue(origin().handle()));
    }
    return origin().synchronize();
  };
  const Result<Ok, CudaError> done = order_first();
  if (!done.ok()) return to_diag(done.error());
  return Ok{};
}

Checked<Ok> RankProgram::capture(std::chrono::nanoseconds limit) {
  HP_TRY(graph_, capture_pass({.limit = limit}));
  if (!parts_.trace) return Ok{};
  HP_TRY(traced_, capture_pass({.limit = limit, .trace = &*parts_.trace}));
  return Ok{};
}

Result<Ok, CudaError> RankProgram::give_up() const {
  return parts_.peers->page(rank_).give_up(aside_);
}

Checked<Graph> RankProgram::capture_pass(const Pass& pass) const {
  HP_TRY(GraphCapture capture, GraphCapture::begin(device(), origin()));
  const Result<Ok, CudaError> ordered = order_all(pass);
  if (!ordered.ok()) return to_diag(ordered.error());
  HP_TRY(Graph graph, capture.end());
  HP_REQUIRE_OK(graph.upload(origin()));
  return graph;
}

Result<Ok, CudaError> RankProgram::order_all(const Pass& pass) const {
  if (pass.trace != nullptr) HP_REQUIRE_OK(pass.trace->begin(origin()));
  for (std::size_t unit = 0; unit < parts_.units.size(); ++unit) {
    HP_REQUIRE_OK(order(unit, pass));
  }
  return join_queues();
}

// A stream that the capture has come to must come back. One whose tasks all became others' work was
// never come to.
Result<Ok, CudaError> RankProgram::join_queues() const {
  std::set<QueueId> queues;
  for (const Unit& unit : parts_.units) queues.insert(queue_of(unit.tasks.front()));
  for (const QueueId queue : queues) {
    if (queue == origin_) continue;
    HP_REQUIRE_OK(ends_.at(queue).record(streams_.at(queue)));
    HP_REQUIRE_OK(origin().wait_for(ends_.at(queue)));
  }
  return Ok{};
}

Result<Ok, CudaError> RankProgram::order(std::size_t index, const Pass& pass) const {
  const Unit& unit = parts_.units[index];
  const TaskId first = unit.tasks.front();
  const Stream& stream = streams_.at(queue_of(first));
  const Place place{.unit = index,
                    .stream = &stream,
                    .context = parts_.peers->page(rank_).context(
                        pass.limit, static_cast<std::uint32_t>(first.value)),
                    .trace = pass.trace};
  HP_REQUIRE_OK(order_waits(place));
  HP_REQUIRE_OK(order_work(place));
  if (!is_boundary(first)) HP_REQUIRE_OK(raise_all(place));
  for (const TaskId task : unit.tasks) {
    const auto event = events_.find(task);
    if (event != events_.end()) HP_REQUIRE_OK(event->second.record(stream));
  }
  return Ok{};
}

bool RankProgram::may_wait(const Unit& unit) const {
  const TaskWiring& wiring = wiring_of(unit.tasks.front());
  return wiring.arrival || (!wiring.waits.empty() && !unit.waits_inside) || !unit.awaited.empty() ||
         !unit.behind.empty() ||
         !std::ranges::all_of(wiring.after, [&](TaskId from) { return is_entry(from); });
}

Result<Ok, CudaError> RankProgram::order_waits(const Place& place) const {
  const Unit& unit = parts_.units[place.unit];
  const TaskWiring& wiring = wiring_of(unit.tasks.front());
  // A queue joins the capture behind its rank's Entry: it is not stamped before.
  for (const bool entries : {true, false}) {
    for (const TaskId from : wiring.after) {
      if (is_entry(from) == entries) HP_REQUIRE_OK(place.stream->wait_for(events_.at(from)));
    }
    if (entries && may_wait(unit)) HP_REQUIRE_OK(stamp(place, Moment::Reached));
  }
  for (const TaskId task : unit.behind) HP_REQUIRE_OK(place.stream->wait_for(arrived_.at(task)));
  if (!unit.waits_inside && !is_one_turn(place)) {
    HP_REQUIRE_OK(await(wiring.waits, place.context, *place.stream));
  }
  HP_REQUIRE_OK(await(unit.awaited, place.context, *place.stream));
  const auto arrived = arrived_.find(unit.tasks.front());
  return arrived == arrived_.end() ? Result<Ok, CudaError>(Ok{})
                                   : arrived->second.record(*place.stream);
}

Result<Ok, CudaError> RankProgram::order_work(const Place& place) const {
  const TaskId task = parts_.units[place.unit].tasks.front();
  const TaskWiring& wiring = wiring_of(task);
  const Stream& stream = *place.stream;
  if (parts_.delay_seed) {
    const std::uint32_t seed =
        *parts_.delay_seed + place.context.task * 64 + static_cast<std::uint32_t>(rank_);
    HP_REQUIRE_OK(parts_.kernels.linger(stream, parts_.peers->signals(rank_), seed, kMostDelayNs));
  }
  if (parts_.stray_at && std::ranges::count(parts_.units[place.unit].tasks, *parts_.stray_at) > 0) {
    HP_REQUIRE_OK(parts_.kernels.stray(stream));
  }
  if (is_boundary(task)) {
    HP_REQUIRE_OK(stamp(place, Moment::Start));
    return order_turn(place);
  }
  HP_REQUIRE_OK(raise(kept(task, wiring.arrivals), place));
  if (wiring.arrival) HP_REQUIRE_OK(await({*wiring.arrival}, place.context, stream));
  HP_REQUIRE_OK(stamp(place, Moment::Start));
  HP_REQUIRE_OK(order_launches(place));
  HP_REQUIRE_OK(raise(kept(task, wiring.raises_after_pull), place));
  if (!wiring.pulled) return Ok{};
  HP_REQUIRE_OK(await({*wiring.pulled}, place.context, stream));
  return stamp(place, Moment::End);
}

bool RankProgram::is_one_turn(const Place& place) const {
  return is_boundary(parts_.units[place.unit].tasks.front()) && place.trace == nullptr;
}

Result<Ok, CudaError> RankProgram::order_turn(const Place& place) const {
  const TaskId task = parts_.units[place.unit].tasks.front();
  const TaskWiring& wiring = wiring_of(task);
  std::vector<device::SignalWait> waits;
  if (is_one_turn(place)) waits = waits_on(wiring.waits);
  const std::vector<Raise> raises = kept(task, wiring.raises);
  const std::vector<device::RaiseTarget> targets = targets_of(raises);
  if (is_entry(task) || !waits.empty() || !targets.empty()) {
    HP_REQUIRE_OK(
        parts_.kernels.turn(*place.stream, parts_.peers->signals(rank_), place.context,
                            {.waits = waits, .begins_epoch = is_entry(task), .targets = targets}));
  }
  return post(raises, place);
}

Result<Ok, CudaError> RankProgram::order_launches(const Place& place) const {
  const Unit& unit = parts_.units[place.unit];
  const Launches& work = place.trace != nullptr ? unit.traced_work : unit.work;
  if (work.size() == 0) return Ok{};
  HP_REQUIRE_OK(work.enqueue(place.stream->handle()));
  if (wiring_of(unit.tasks.front()).pulled) return Ok{};
  return stamp(place, Moment::End);
}

Result<Ok, CudaError> RankProgram::stamp(const Place& place, Moment moment) {
  if (place.trace == nullptr) return Ok{};
  return place.trace->stamp(*place.stream, place.unit, moment);
}

Result<Ok, CudaError> RankProgram::raise_all(const Place& place) const {
  const Unit& unit = parts_.units[place.unit];
  std::vector<Raise> raises;
  for (const TaskId task : unit.tasks) {
    if (std::ranges::find(unit.silent, task) != unit.silent.end()) continue;
    const std::vector<Raise> own = kept(task, wiring_of(task).raises);
    raises.insert(raises.end(), own.begin(), own.end());
  }
  if (unit.raised_by == RaisedBy::Engine) return raise_by_engine(raises, *place.stream);
  return raise(raises, place);
}

// The epoch into the flags, behind what the stream copied before: no multiprocessor is needed. That
// a poisoned rank raises them too does no harm, since the execution has failed.
Result<Ok, CudaError> RankProgram::raise_by_engine(const std::vector<Raise>& raises,
                                                   const Stream& stream) const {
  const DriverApi& driver = device().driver();
  for (const Raise& raise : raises) {
    const SignalAddresses& page = parts_.peers->signals(static_cast<int>(raise.rank.value));
    const DeviceAddress epoch = parts_.peers->signals(rank_).epoch();
    HP_REQUIRE_OK(cuda_call(driver, "cuMemcpyAsync",
                            driver.cuMemcpyAsync(page.flag(raise.signal), epoch,
                                                 sizeof(std::uint32_t), stream.handle())));
  }
  return Ok{};
}

std::vector<Raise> RankProgram::kept(TaskId task, std::vector<Raise> raises) const {
  if (parts_.drop_signal_of != task) return raises;
  std::erase_if(raises, [&](const Raise& raise) { return raise.rank != RankId(rank_); });
  return raises;
}

Result<Ok, CudaError> RankProgram::raise(const std::vector<Raise>& raises,
                                         const Place& place) const {
  const std::vector<device::RaiseTarget> targets = targets_of(raises);
  if (!targets.empty()) {
    HP_REQUIRE_OK(parts_.kernels.raise(*place.stream, parts_.peers->signals(rank_), targets));
  }
  return post(raises, place);
}

Result<Ok, CudaError> RankProgram::post(const std::vector<Raise>& raises,
                                        const Place& place) const {
  std::vector<device::Post> posts;
  for (const Raise& raise : raises) {
    if (raise.is_posted) posts.push_back(parts_.network->post_of(rank_, raise));
  }
  if (posts.empty()) return Ok{};
  return parts_.kernels.post(*place.stream, place.context, posts);
}

std::vector<device::RaiseTarget> RankProgram::targets_of(const std::vector<Raise>& raises) const {
  std::vector<device::RaiseTarget> targets;
  targets.reserve(raises.size());
  for (const Raise& raise : raises) {
    if (raise.is_posted) continue;
    const SignalAddresses& page = parts_.peers->signals(static_cast<int>(raise.rank.value));
    targets.push_back(target_of(page, raise.signal, raise.added));
  }
  return targets;
}

Result<Ok, CudaError> RankProgram::await(const std::vector<std::int32_t>& signals,
                                         const device::WaitContext& context,
                                         const Stream& stream) const {
  if (signals.empty()) return Ok{};
  return parts_.kernels.await(stream, context, waits_on(signals));
}

std::vector<device::SignalWait> RankProgram::waits_on(
    const std::vector<std::int32_t>& signals) const {
  const std::vector<PageSignal>& page = parts_.wiring->pages[static_cast<std::size_t>(rank_)];
  std::vector<device::SignalWait> waits;
  waits.reserve(signals.size());
  for (const std::int32_t signal : signals) {
    const device::FlagWait wait = wait_for(*parts_.peers, parts_.network, rank_, signal,
                                           page[static_cast<std::size_t>(signal)]);
    waits.push_back({.wait = wait, .epochs_back = 0});
  }
  return waits;
}

}  // namespace harpe::cuda
