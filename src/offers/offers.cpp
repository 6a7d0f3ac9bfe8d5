#include "offers/offers.h"

#include <algorithm>
#include <array>

namespace harpe {
namespace {

std::array<const ExecutorOffers*, 2> all_executors() { return {&cpu_offers(), &gpu_offers()}; }

template <class Selects>
std::vector<std::string> names_of(const Selects& selects) {
  std::vector<std::string> names;
  for (const ExecutorOffers* const executor : all_executors()) {
    for (const KernelOffer& kernel : executor->kernels) {
      if (selects(kernel)) names.emplace_back(kernel.name);
    }
  }
  return names;
}

}  // namespace

const KernelOffer* ExecutorOffers::find(std::string_view kernel) const {
  const auto found = std::ranges::find(kernels, kernel, &KernelOffer::name);
  return found == kernels.end() ? nullptr : &*found;
}

const KernelOffer* find_offer(std::string_view kernel) {
  for (const ExecutorOffers* const executor : all_executors()) {
    if (const KernelOffer* const found = executor->find(kernel)) return found;
  }
  return nullptr;
}

std::vector<std::string> offered_kernels() {
  return names_of([](const KernelOffer&) { return true; });
}

std::vector<std::string> offered_kernels(std::string_view leaf) {
  return names_of([&](const KernelOffer& kernel) { return is_leaf(leaf, kernel.leaf); });
}

bool is_offered(std::string_view leaf, KernelTrait trait) {
  return std::ranges::any_of(all_executors(), [&](const ExecutorOffers* executor) {
    return std::ranges::any_of(executor->kernels, [&](const KernelOffer& kernel) {
      return is_leaf(leaf, kernel.leaf) && kernel.*trait;
    });
  });
}

}  // namespace harpe
