#include "measure/halving.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "measure/statistics.h"

namespace harpe {
namespace {

constexpr std::size_t kEnough = 2;
constexpr int kIdleRounds = 2;

class Halving {
 public:
  Halving(std::size_t count, const TakeTurn& take_turn, const HalvingOptions& options)
      : take_turn_(take_turn), options_(options) {
    result_.standings.resize(count);
    result_.left.resize(count - options.companions);
    std::iota(result_.left.begin(), result_.left.end(), std::size_t{0});
    companions_.resize(options.companions);
    std::iota(companions_.begin(), companions_.end(), result_.left.size());
  }

  HalvingResult run() {
    int idle = 0;
    while (!result_.left.empty()) {
      if (options_.begin_round) {
        options_.begin_round(result_.rounds, result_.left.size() + companions_.size());
      }
      result_.complete = take_round();
      rank_left();
      if (!result_.complete) break;
      ++result_.rounds;
      const std::size_t before = result_.left.size();
      if (before <= kEnough) break;
      put_out_slower();
      idle = result_.left.size() == before ? idle + 1 : 0;
      if (result_.left.size() <= kEnough || idle == kIdleRounds) break;
    }
    return std::move(result_);
  }

 private:
  // False if it was ended early.
  bool take_round() {
    std::vector<std::size_t> all = result_.left;
    all.insert(all.end(), companions_.begin(), companions_.end());
    for (std::int64_t pass = 0; pass < options_.passes; ++pass, ++turns_) {
      for (std::size_t place = 0; place < all.size(); ++place) {
        Standing& one = result_.standings[all[(place + turns_) % all.size()]];
        if (one.failed) continue;
        if (options_.is_over && options_.is_over()) return false;
        const std::vector<double> times = take_turn_(all[(place + turns_) % all.size()]);
        one.failed = times.empty();
        one.times.insert(one.times.end(), times.begin(), times.end());
      }
    }
    for (const std::size_t index : all) {
      if (!result_.standings[index].failed) ++result_.standings[index].rounds;
    }
    return true;
  }

  // Sorts the rest by speed, without those that failed or had no turn.
  void rank_left() {
    std::erase_if(result_.left, [&](std::size_t index) {
      return result_.standings[index].failed || result_.standings[index].times.empty();
    });
    std::ranges::stable_sort(result_.left, {},
                             [&](std::size_t index) { return result_.standings[index].median(); });
  }

  void put_out_slower() {
    const std::size_t half = (result_.left.size() + 1) / 2;
    const Standing& last = result_.standings[result_.left[half - 1]];
    const auto stays = [&](std::size_t index) {
      const Standing& one = result_.standings[index];
      const double margin = std::max({options_.equal, last.noise(), one.noise()});
      return one.median() <= last.median() * (1 + margin);
    };
    result_.left.erase(
        std::stable_partition(result_.left.begin() + static_cast<std::ptrdiff_t>(half),
                              result_.left.end(), stays),
        result_.left.end());
  }

  const TakeTurn& take_turn_;
  const HalvingOptions& options_;
  HalvingResult result_;
  std::vector<std::size_t> companions_;
  std::size_t turns_ = 0;  // passes so far, which determine who goes first
};

}  // namespace

double Standing::median() const { return quantile(times, 0.5); }

double Standing::noise() const {
  const double width = quantile(times, 0.75) - quantile(times, 0.25);
  return width / median() / std::sqrt(static_cast<double>(times.size()));
}

HalvingResult halve(std::size_t count, const TakeTurn& take_turn, const HalvingOptions& options) {
  return Halving(count, take_turn, options).run();
}

}  // namespace harpe
