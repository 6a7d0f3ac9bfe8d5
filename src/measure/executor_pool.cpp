#include "measure/executor_pool.h"

#include <algorithm>
#include <array>

namespace harpe {

// G005 is the failure of any CUDA call, including allocations.
bool may_be_short_of_memory(const Diag& diag) {
  constexpr std::array kCodes = {DiagCode::I502, DiagCode::X005, DiagCode::G005, DiagCode::G073};
  return std::ranges::find(kCodes, diag.code) != kCodes.end();
}

Checked<ExecutorPool::Got> ExecutorPool::at(std::size_t index) {
  ++asked_;
  if (const auto found = entries_.find(index); found != entries_.end()) {
    found->second.asked_at = asked_;
    return Got{.executor = found->second.executor.get(), .is_new = false};
  }
  Checked<std::unique_ptr<Executor>> made = make_(index);
  while (!made.ok() && may_be_short_of_memory(made.error()) && !entries_.empty()) {
    drop_last();
    made = make_(index);
  }
  if (!made.ok()) return made.error();
  Entry& entry = entries_[index];
  entry = {.executor = std::move(made).value(), .asked_at = asked_};
  return Got{.executor = entry.executor.get(), .is_new = true};
}

void ExecutorPool::drop_last() {
  entries_.erase(std::ranges::max_element(entries_, {},
                                          [](const auto& entry) { return entry.second.asked_at; }));
}

}  // namespace harpe
