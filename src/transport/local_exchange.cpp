#include "transport/local_exchange.h"

#include <condition_variable>
#include <mutex>

namespace harpe::transport {
namespace {

// Rendezvous of ranks, round after round: the last rank to arrive completes the round.
class Table {
 public:
  Table(int ranks, std::chrono::milliseconds limit)
      : limit_(limit), given_(static_cast<std::size_t>(ranks)) {}

  [[nodiscard]] int ranks() const { return static_cast<int>(given_.size()); }

  Checked<std::vector<Blob>> meet(int rank, std::span<const std::byte> own) {
    std::unique_lock lock(mutex_);
    given_[static_cast<std::size_t>(rank)].assign(own.begin(), own.end());
    const std::int64_t round = round_;
    if (++come_ == ranks() && !is_over_) {
      come_ = 0;
      ++round_;
      complete_ = given_;
      changed_.notify_all();
      return complete_;
    }
    const bool is_met =
        changed_.wait_for(lock, limit_, [&] { return round_ != round || is_over_; });
    if (is_met && round_ != round) return complete_;
    is_over_ = true;
    changed_.notify_all();
    return make_diag(DiagCode::N010,
                     {{"rank", rank},
                      {"address", "a table of this process"},
                      {"reason", std::to_string(come_) + " of " + std::to_string(ranks()) +
                                     " came within " + std::to_string(limit_.count()) + " ms"}});
  }

 private:
  std::chrono::milliseconds limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Blob> given_;     // guarded by mutex_, as are:
  std::vector<Blob> complete_;  // of the previous round
  std::int64_t round_ = 0;
  int come_ = 0;
  bool is_over_ = false;
};

class LocalExchange final : public Exchange {
 public:
  LocalExchange(int rank, std::shared_ptr<Table> table) : rank_(rank), table_(std::move(table)) {}
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int ranks() const override { return table_->ranks(); }
  [[nodiscard]] Checked<std::vector<Blob>> all_gather(std::span<const std::byte> own) override {
    return table_->meet(rank_, own);
  }

 private:
  int rank_;
  std::shared_ptr<Table> table_;
};

}  // namespace

std::vector<std::shared_ptr<Exchange>> make_local_exchanges(int ranks,
                                                            std::chrono::milliseconds limit) {
  const auto table = std::make_shared<Table>(ranks, limit);
  std::vector<std::shared_ptr<Exchange>> exchanges;
  for (int rank = 0; rank < ranks; ++rank) {
    exchanges.push_back(std::make_shared<LocalExchange>(rank, table));
  }
  return exchanges;
}

}  // namespace harpe::transport
