#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "measure/bench.h"

namespace harpe {

bool BenchMemory::is_off() const {
  const std::int64_t most = taken.value_or(allocated);
  return 10 * std::abs(most - planned) > planned;
}

std::optional<PairedSpeedup::Verdict> PairedSpeedup::verdict() const {
  constexpr double kMargin = 1.02;
  if (rounds < kLeastPairedRounds || !interval) return std::nullopt;
  if (interval->high * kMargin < 1) return Verdict::Slower;
  return interval->low > kMargin ? Verdict::Faster : Verdict::Level;
}

std::string_view print(PairedSpeedup::Verdict verdict) {
  switch (verdict) {
    case PairedSpeedup::Verdict::Slower:
      return "slower";
    case PairedSpeedup::Verdict::Level:
      return "level";
    case PairedSpeedup::Verdict::Faster:
      return "faster";
  }
  return "";
}

const BenchEntry* BenchRow::best(bool baseline) const {
  const BenchEntry* found = nullptr;
  for (const BenchEntry& entry : entries) {
    if (entry.is_baseline != baseline || !entry.median_us || entry.is_wrong()) continue;
    if (found == nullptr || *entry.median_us < *found->median_us) found = &entry;
  }
  return found;
}

std::optional<double> BenchRow::ratio() const {
  const BenchEntry* const ours = best(false);
  const BenchEntry* const theirs = best(true);
  if (ours == nullptr || theirs == nullptr) return std::nullopt;
  return *theirs->median_us / *ours->median_us;
}

std::optional<PairedSpeedup> BenchRow::paired() const {
  const BenchEntry* const ours = best(false);
  const BenchEntry* const theirs = best(true);
  if (ours == nullptr || theirs == nullptr) return std::nullopt;
  std::vector<double> speedups;
  for (const auto& [round, us] : ours->round_us) {
    const auto other = theirs->round_us.find(round);
    if (other != theirs->round_us.end()) speedups.push_back(other->second / us);
  }
  if (speedups.empty()) return std::nullopt;
  return PairedSpeedup{.median = quantile(speedups, 0.5),
                       .rounds = std::ssize(speedups),
                       .interval = median_interval(speedups)};
}

std::optional<double> BenchRow::over_limit() const {
  const BenchEntry* const ours = best(false);
  const std::optional<double> total = limit.total_us();
  if (ours == nullptr || !total) return std::nullopt;
  return *ours->median_us / *total;
}

std::optional<double> BenchReport::geometric_mean() const {
  double sum = 0;
  int count = 0;
  for (const BenchRow& row : rows) {
    const std::optional<double> ratio = row.ratio();
    if (!ratio) continue;
    sum += std::log(*ratio);
    ++count;
  }
  if (count == 0) return std::nullopt;
  return std::exp(sum / count);
}

const BenchRow* BenchReport::worst() const {
  const BenchRow* found = nullptr;
  for (const BenchRow& row : rows) {
    if (row.ratio() && (found == nullptr || *row.ratio() < *found->ratio())) found = &row;
  }
  return found;
}

bool BenchReport::is_wrong() const {
  return std::ranges::any_of(rows, [](const BenchRow& row) {
    return std::ranges::any_of(row.entries, &BenchEntry::is_wrong);
  });
}

bool BenchReport::is_whole() const {
  return std::ranges::all_of(
      rows, [](const BenchRow& row) { return !row.skipped.empty() || row.best(false) != nullptr; });
}

}  // namespace harpe
