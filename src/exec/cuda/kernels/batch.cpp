#include "exec/cuda/kernels/batch.h"

#include <algorithm>
#include <optional>
#include <span>

namespace harpe::cuda {
namespace {

bool are_alike(const LaunchSpec& one, const LaunchSpec& other) { return one->is_like(*other); }

// Appends the run as one launch if it can be joined, else one by one.
void add_batch(std::span<const LaunchSpec> run, int multiprocessors, LaunchSpecs& launches) {
  std::optional<LaunchSpec> batch;
  if (run.size() > 1) batch = run.front()->join(run, multiprocessors);
  if (batch) {
    launches.push_back(*std::move(batch));
  } else {
    launches.insert(launches.end(), run.begin(), run.end());
  }
}

}  // namespace

bool can_be_batched(const LaunchSpecs& launches) {
  return std::ranges::adjacent_find(launches, are_alike) != launches.end();
}

LaunchSpecs batched(LaunchSpecs launches, int multiprocessors) {
  LaunchSpecs batches;
  const std::span<const LaunchSpec> all(launches);
  for (std::size_t first = 0; first < all.size();) {
    std::vector<Touched> touched;
    std::size_t end = first + 1;
    for (; end < all.size() && end - first < kMostJoined && are_alike(all[first], all[end]);
         ++end) {
      if (touched.empty()) touched.push_back(all[first]->touched());
      Touched next = all[end]->touched();
      const auto is_needed = [&](const Touched& before) { return next.depends_on(before); };
      if (std::ranges::any_of(touched, is_needed)) break;
      touched.push_back(std::move(next));
    }
    add_batch(all.subspan(first, end - first), multiprocessors, batches);
    first = end;
  }
  return batches;
}

}  // namespace harpe::cuda
