#include "exec/processes/process_group.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "support/check.h"
#include "support/threads.h"

namespace harpe::processes {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using transport::Blob;

// Compiling kernels or computing may take long; an exited process is detected at once.
constexpr minutes kPatience{10};
// How long a rank with a fault waits for the reports of the others.
constexpr milliseconds kAfterFault{1000};

}  // namespace

Checked<std::int64_t> ranks_of_each(const Launch& launch, const Plan& plan) {
  const std::int64_t ranks = plan.mesh.ranks();
  if (ranks % launch.ranks == 0) return ranks / launch.ranks;
  return make_diag(DiagCode::N016,
                   {{"variable", launch.ranks_by},
                    {"reason", "is " + std::to_string(launch.ranks) + ", among which the plan's " +
                                   std::to_string(ranks) + " ranks cannot be divided evenly"}});
}

Checked<ProcessGroup> ProcessGroup::meet(const Launch& launch,
                                         const std::function<void(const Diag&)>& warn) {
  HP_TRY(auto rendezvous, transport::Rendezvous::meet({.address = launch.address,
                                                       .interface = launch.interface,
                                                       .secret = launch.secret,
                                                       .rank = launch.rank,
                                                       .ranks = launch.ranks,
                                                       .limit = launch.arrival,
                                                       .warn = warn}));
  rendezvous->set_limit(kPatience);
  return ProcessGroup(std::move(rendezvous), launch.local_rank);
}

Checked<Ok> ProcessGroup::agree(const std::optional<Diag>& failure) {
  return transport::agree(*rendezvous_, failure);
}

Checked<Ok> ProcessGroup::compare(const std::string& hash) {
  return transport::compare(*rendezvous_, hash);
}

Checked<Ok> ProcessGroup::wait_for_all() { return agree(std::nullopt); }

std::jthread ProcessGroup::watch(std::function<void()> stop) {
  constexpr milliseconds kLook{20};  // how often the thread checks whether the watch has ended
  return start_thread(
      [rendezvous = rendezvous_.get(), stop = std::move(stop)](const std::stop_token& end) {
        while (!end.stop_requested()) {
          if (rendezvous->listen(kLook)) stop();
        }
      });
}

std::vector<ProcessGroup::Answer> ProcessGroup::conclude(std::span<const std::byte> own,
                                                         bool is_fine, milliseconds wait_limit) {
  if (!is_fine) rendezvous_->tell_stopped();
  const milliseconds limit = is_fine ? milliseconds(kPatience) : kAfterFault;
  std::vector<std::optional<Blob>> blobs =
      rendezvous_->gather_left(own, limit, wait_limit + kAfterFault);
  const bool hears_first = rank() == 0 || blobs[0].has_value();
  std::vector<Answer> answers(blobs.size());
  for (std::size_t of = 0; of < blobs.size(); ++of) {
    // Without process 0's answer the others' state is unknown, except for a process reported as
    // lost.
    const bool is_known = hears_first || of == 0 || lost() == static_cast<int>(of);
    answers[of].is_lost = !blobs[of] && is_known;
    answers[of].said = std::move(blobs[of]);
  }
  return answers;
}

Checked<std::vector<std::chrono::nanoseconds>> ProcessGroup::longest_of(
    std::vector<std::chrono::nanoseconds> times) {
  constexpr std::size_t kAtOnce = 65536;  // what fits into one exchange
  for (std::size_t from = 0; from < times.size(); from += kAtOnce) {
    const auto part = std::span(times).subspan(from, std::min(kAtOnce, times.size() - from));
    const auto all = rendezvous_->all_gather(std::as_bytes(part));
    if (!all.ok()) return all.error();
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

// The process with most events determines the number of exchanges; the others add empty parts.
template <class Event>
Checked<std::vector<Event>> ProcessGroup::gather(std::span<const Event> own) {
  static_assert(std::is_trivially_copyable_v<Event>);
  constexpr std::size_t kAtOnce = 16384;  // what fits into one exchange
  HP_TRY(const auto most, longest_of({std::chrono::nanoseconds(own.size())}));
  std::vector<Event> events;
  for (std::size_t from = 0; from < static_cast<std::size_t>(most.front().count());
       from += kAtOnce) {
    const std::size_t begin = std::min(from, own.size());
    const auto part = own.subspan(begin, std::min(kAtOnce, own.size() - begin));
    const auto all = rendezvous_->all_gather(std::as_bytes(part));
    if (!all.ok()) return all.error();
    for (const Blob& blob : *all) {
      std::vector<Event> theirs(blob.size() / sizeof(Event));
      std::memcpy(theirs.data(), blob.data(), theirs.size() * sizeof(Event));
      events.insert(events.end(), theirs.begin(), theirs.end());
    }
  }
  return events;
}

Checked<std::vector<TraceEvent>> ProcessGroup::events_of_all(std::vector<TraceEvent> own) {
  return gather(std::span<const TraceEvent>(own));
}

Checked<std::vector<KernelEvent>> ProcessGroup::events_of_all(std::vector<KernelEvent> own) {
  return gather(std::span<const KernelEvent>(own));
}

}  // namespace harpe::processes
