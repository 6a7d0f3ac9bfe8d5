#include "exec/cuda/executor/communicators.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "support/check.h"
#include "support/threads.h"

namespace harpe::cuda {
namespace {

using library::Nccl;
using library::NcclId;
using library::NcclRank;

// Runs in a thread that no thread must wait for, because NCCL's waits there cannot be cancelled.
// `work` owns what it needs.
template <class T>
std::future<T> start(std::packaged_task<T()> work) {
  std::future<T> result = work.get_future();
  start_thread(std::move(work)).detach();
  return result;
}

struct Place {
  std::size_t team = 0;
  RankId rank;
  int number = 0;  // in the team
};

// One rank's places. Every rank joins its teams in the same order, so joins cannot deadlock.
std::vector<Place> places_of(const std::vector<Team>& teams, RankId rank) {
  std::vector<Place> places;
  for (std::size_t team = 0; team < teams.size(); ++team) {
    const auto found = std::ranges::find(teams[team], rank);
    if (found == teams[team].end()) continue;
    places.push_back(
        {.team = team, .rank = rank, .number = static_cast<int>(found - teams[team].begin())});
  }
  return places;
}

// The process of each team's first rank makes the team's id and sends it to the others.
Checked<std::vector<NcclId>> ids_of(const Nccl& nccl, const std::vector<Team>& teams,
                                    const std::vector<const Device*>& devices,
                                    transport::Exchange* exchange) {
  std::vector<NcclId> ids(teams.size());
  std::optional<Diag> failure;
  for (std::size_t team = 0; team < teams.size() && !failure; ++team) {
    if (devices[teams[team].front().index()] == nullptr) continue;
    const Checked<NcclId> id = nccl.make_id();
    if (id.ok()) ids[team] = *id;
    if (!id.ok()) failure = id.error();
  }
  if (exchange != nullptr && failure) ids.clear();  // tells the other processes
  if (exchange == nullptr) return failure ? Checked<std::vector<NcclId>>(*failure) : ids;
  const auto all = exchange->all_gather(std::as_bytes(std::span(ids)));
  if (failure) return *failure;
  if (!all.ok()) return all.error();
  for (std::size_t team = 0; team < teams.size(); ++team) {
    const transport::Blob& blob = (*all)[teams[team].front().index()];
    if (blob.size() != ids.size() * sizeof(NcclId)) {
      return make_diag(DiagCode::N017, {{"rank", teams[team].front().value},
                                        {"reason", "it could not begin a communicator of NCCL"}});
    }
    std::memcpy(&ids[team], blob.data() + team * sizeof(NcclId), sizeof(NcclId));
  }
  return ids;
}

}  // namespace

Communicators::~Communicators() {
  constexpr std::chrono::seconds kToEnd{5};
  abort();
  const auto deadline = std::chrono::steady_clock::now() + kToEnd;
  for (const std::future<void>& each : aborts_) each.wait_until(deadline);
}

Checked<Ok> Communicators::connect(const Nccl& nccl, const std::vector<Team>& teams,
                                   const std::vector<const Device*>& devices,
                                   transport::Exchange* exchange, std::chrono::milliseconds limit) {
  using Joined = Checked<std::vector<NcclRank>>;
  HP_TRY(const std::vector<NcclId> ids, ids_of(nccl, teams, devices, exchange));
  std::vector<std::pair<std::vector<Place>, std::future<Joined>>> joining;
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    if (devices[rank] == nullptr) continue;
    const std::vector<Place> places = places_of(teams, RankId(static_cast<std::int64_t>(rank)));
    std::packaged_task<Joined()> join([=, device = *devices[rank]]() -> Joined {
      const Result<Ok, CudaError> current = device.make_current();
      if (!current.ok()) return to_diag(current.error());
      std::vector<NcclRank> ends;
      for (const Place& place : places) {
        HP_TRY(NcclRank end, nccl.join(ids[place.team], place.number,
                                       static_cast<int>(teams[place.team].size())));
        ends.push_back(std::move(end));
      }
      return ends;
    });
    joining.emplace_back(places, start(std::move(join)));
  }
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (auto& [places, ends] : joining) {
    if (ends.wait_until(deadline) != std::future_status::ready) {
      return make_diag(DiagCode::G082,
                       {{"ranks", devices.size()},
                        {"seconds", std::chrono::ceil<std::chrono::seconds>(limit).count()}});
    }
    HP_TRY(std::vector<NcclRank> own, ends.get());
    for (std::size_t i = 0; i < own.size(); ++i) {
      ends_.push_back({.team = places[i].team,
                       .rank = places[i].rank,
                       .nccl = std::make_shared<NcclRank>(std::move(own[i]))});
    }
  }
  return Ok{};
}

const NcclRank& Communicators::end(std::size_t team, RankId rank) const {
  const auto found = std::ranges::find_if(
      ends_, [&](const End& end) { return end.team == team && end.rank == rank; });
  HP_CHECK(found != ends_.end(), "a communicator of the rank's team");
  return *found->nccl;
}

// NCCL signals its kernels at once, and returns when graphs that contain them are destroyed.
void Communicators::abort() {
  if (is_aborted_.exchange(true)) return;
  for (const End& end : ends_) {
    aborts_.push_back(start(std::packaged_task<void()>([nccl = end.nccl] { nccl->abort(); })));
  }
}

}  // namespace harpe::cuda
