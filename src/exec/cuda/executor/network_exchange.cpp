#include "exec/cuda/executor/network_exchange.h"

#include <utility>

namespace harpe::cuda {
namespace {

using transport::Blob;
using transport::Exchange;

class PlaceExchange final : public Exchange {
 public:
  PlaceExchange(MeetingPlace& place, int rank) : place_(place), rank_(rank) {}
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int ranks() const override { return place_.ranks(); }
  [[nodiscard]] Checked<std::vector<Blob>> all_gather(std::span<const std::byte> own) override {
    return place_.all_gather(rank_, own);
  }

 private:
  MeetingPlace& place_;
  int rank_;
};

}  // namespace

Checked<std::vector<Blob>> MeetingPlace::all_gather(int rank, std::span<const std::byte> own) {
  std::unique_lock lock(lock_);
  given_[static_cast<std::size_t>(rank)].assign(own.begin(), own.end());
  const std::int64_t round = round_;
  if (++waiting_ == static_cast<int>(given_.size())) {
    taken_ = given_;
    waiting_ = 0;
    ++round_;
    changed_.notify_all();
  }
  changed_.wait(lock, [&] { return round_ != round || is_left_; });
  if (round_ != round) return taken_;
  return make_diag(DiagCode::N010, {{"rank", rank},
                                    {"address", "this process"},
                                    {"reason", "another of its ranks cannot be made"}});
}

void MeetingPlace::leave() {
  const std::scoped_lock lock(lock_);
  is_left_ = true;
  changed_.notify_all();
}

std::unique_ptr<Exchange> exchange_at(MeetingPlace& place, int rank) {
  return std::make_unique<PlaceExchange>(place, rank);
}

}  // namespace harpe::cuda
