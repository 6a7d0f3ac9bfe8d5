#include "exec/cuda/executor/process_group.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "support/check.h"

namespace harpe::cuda {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

// Processes are started together, and do much the same until they meet.
constexpr milliseconds kArrival{60'000};
// Who compiles kernels, or computes without waiting, may take long; who is gone is known at once.
constexpr minutes kPatience{10};
// After a fault of its own a rank waits no longer than this for what the others say.
constexpr milliseconds kAfterFault{1000};

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string text_of(const Blob& blob) {
  return {reinterpret_cast<const char*>(blob.data()), blob.size()};
}

// What a report is besides its texts.
struct ReportHead {
  std::int32_t status = 0;  // of the driver
  std::uint8_t has_end = 0;
  std::uint8_t has_record = 0;
  std::uint8_t is_poisoned = 0;
  std::uint8_t call_bytes = 0;
  std::uint8_t name_bytes = 0;
  device::FaultRecord record{};
};

}  // namespace

Blob pack(const RankReport& report) {
  ReportHead head{.has_end = report.end ? std::uint8_t{1} : std::uint8_t{0},
                  .has_record = report.record ? std::uint8_t{1} : std::uint8_t{0},
                  .is_poisoned = report.is_poisoned ? std::uint8_t{1} : std::uint8_t{0}};
  if (report.record) head.record = *report.record;
  std::string texts;
  if (report.end) {
    const std::string call = report.end->call.substr(0, 255);
    const std::string name = report.end->name.substr(0, 255);
    head.status = static_cast<std::int32_t>(report.end->status);
    head.call_bytes = static_cast<std::uint8_t>(call.size());
    head.name_bytes = static_cast<std::uint8_t>(name.size());
    texts = call + name + report.end->reason;
  }
  const std::string all = std::string(reinterpret_cast<const char*>(&head), sizeof(head)) + texts;
  const auto bytes = bytes_of(all);
  return {bytes.begin(), bytes.end()};
}

RankReport unpack(const Blob& blob) {
  RankReport report;
  ReportHead head;
  if (blob.size() < sizeof(head)) {
    report.is_lost = true;
    return report;
  }
  std::memcpy(&head, blob.data(), sizeof(head));
  const std::string texts = text_of(blob).substr(sizeof(head));
  report.is_poisoned = head.is_poisoned != 0;
  if (head.has_record != 0) report.record = head.record;
  if (head.has_end != 0) {
    const std::size_t call = std::min<std::size_t>(head.call_bytes, texts.size());
    const std::size_t name = std::min<std::size_t>(head.name_bytes, texts.size() - call);
    report.end = CudaError{.call = texts.substr(0, call),
                           .status = static_cast<CUresult>(head.status),
                           .name = texts.substr(call, name),
                           .reason = texts.substr(call + name),
                           .where = {}};
  }
  return report;
}

Checked<ProcessGroup> ProcessGroup::meet(const Launch& launch, const Plan& plan) {
  if (launch.ranks != plan.mesh.ranks()) {
    return make_diag(DiagCode::G078,
                     {{"variable", "WORLD_SIZE"},
                      {"reason", "is " + std::to_string(launch.ranks) + ", and the plan has " +
                                     std::to_string(plan.mesh.ranks()) + " ranks"}});
  }
  auto bootstrap = SocketBootstrap::meet(
      {.address = launch.address, .rank = launch.rank, .ranks = launch.ranks, .limit = kArrival});
  if (!bootstrap.ok()) return to_diag(bootstrap.error());
  (*bootstrap)->set_limit(kPatience);
  return ProcessGroup(std::move(bootstrap).value(), launch.local_rank);
}

Checked<Ok> ProcessGroup::agree(const std::optional<Diag>& failure) {
  const std::string reason = failure ? render_message(*failure) : "";
  const auto all = bootstrap_->all_gather(bytes_of(reason));
  if (failure) return *failure;
  if (!all.ok()) return to_diag(all.error());
  for (std::size_t rank = 0; rank < all->size(); ++rank) {
    if ((*all)[rank].empty()) continue;
    return make_diag(DiagCode::G079, {{"rank", rank}, {"reason", text_of((*all)[rank])}});
  }
  return Ok{};
}

Checked<Ok> ProcessGroup::compare(const std::string& hash) {
  const auto all = bootstrap_->all_gather(bytes_of(hash));
  if (!all.ok()) return to_diag(all.error());
  const auto other =
      std::ranges::find_if(*all, [&](const Blob& each) { return each != (*all)[0]; });
  if (other == all->end()) return Ok{};
  return make_diag(DiagCode::G076, {{"rank", other - all->begin()}});
}

Checked<Ok> ProcessGroup::wait_for_all() { return agree(std::nullopt); }

std::jthread ProcessGroup::watch(std::function<void()> stop) {
  constexpr milliseconds kLook{20};  // how often the end of the watch is looked for
  return std::jthread(
      [bootstrap = bootstrap_.get(), stop = std::move(stop)](const std::stop_token& end) {
        while (!end.stop_requested()) {
          if (bootstrap->listen(kLook)) stop();
        }
      });
}

std::vector<RankReport> ProcessGroup::exchange(const RankReport& own) {
  if (!own.is_fine()) bootstrap_->tell_stopped();
  const milliseconds limit = own.is_fine() ? milliseconds(kPatience) : kAfterFault;
  const auto answers = bootstrap_->gather_left(pack(own), limit);
  std::vector<RankReport> reports(answers.size());
  for (std::size_t rank = 0; rank < answers.size(); ++rank) {
    // Who hears nothing of rank 0 knows nothing of the others, but who was told to be gone.
    const bool is_known = answers[0].has_value() || rank == 0 || lost() == static_cast<int>(rank);
    if (answers[rank]) {
      reports[rank] = unpack(*answers[rank]);
    } else {
      reports[rank].is_lost = is_known;
    }
  }
  reports[static_cast<std::size_t>(rank())] = own;
  return reports;
}

Checked<std::vector<std::chrono::nanoseconds>> ProcessGroup::longest_of(
    std::vector<std::chrono::nanoseconds> times) {
  constexpr std::size_t kAtOnce = 65536;  // what one exchange holds
  for (std::size_t from = 0; from < times.size(); from += kAtOnce) {
    const auto part = std::span(times).subspan(from, std::min(kAtOnce, times.size() - from));
    const auto all = bootstrap_->all_gather(std::as_bytes(part));
    if (!all.ok()) return to_diag(all.error());
    for (const Blob& blob : *all) {
      std::vector<std::chrono::nanoseconds> theirs(blob.size() / sizeof(part[0]));
      std::memcpy(theirs.data(), blob.data(), theirs.size() * sizeof(part[0]));
      for (std::size_t i = 0; i < std::min(part.size(), theirs.size()); ++i) {
        part[i] = std::max(part[i], theirs[i]);
      }
    }
  }
  return times;
}

Checked<std::vector<TraceEvent>> ProcessGroup::events_of_all(std::vector<TraceEvent> own,
                                                             std::size_t tasks) {
  static_assert(std::is_trivially_copyable_v<TraceEvent>);
  constexpr std::size_t kAtOnce = 16384;  // what one exchange holds
  std::vector<TraceEvent> events;
  // As many exchanges as a rank that had all tasks would take: who has fewer adds nothing.
  for (std::size_t from = 0; from < tasks; from += kAtOnce) {
    const std::size_t begin = std::min(from, own.size());
    const auto part = std::span(own).subspan(begin, std::min(kAtOnce, own.size() - begin));
    const auto all = bootstrap_->all_gather(std::as_bytes(part));
    if (!all.ok()) return to_diag(all.error());
    for (const Blob& blob : *all) {
      std::vector<TraceEvent> theirs(blob.size() / sizeof(TraceEvent));
      std::memcpy(theirs.data(), blob.data(), theirs.size() * sizeof(TraceEvent));
      events.insert(events.end(), theirs.begin(), theirs.end());
    }
  }
  return events;
}

}  // namespace harpe::cuda
