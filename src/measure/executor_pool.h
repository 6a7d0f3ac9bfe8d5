#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "exec/executor.h"
#include "support/diag.h"

namespace harpe {

// Whether less of it elsewhere might help.
[[nodiscard]] bool may_be_short_of_memory(const Diag& diag);

// Executors of several plans that take turns, as many at a time as fit into memory.
class ExecutorPool {
 public:
  using Make = std::function<Checked<std::unique_ptr<Executor>>(std::size_t index)>;

  explicit ExecutorPool(Make make) : make_(std::move(make)) {}

  struct Got {
    Executor* executor = nullptr;  // until another is asked for
    bool is_new = false;
  };
  // Made where it is not there. While memory is short, others go: first the one that was asked for
  // last, whose next turn is the farthest. Errors: those of making it alone.
  [[nodiscard]] Checked<Got> at(std::size_t index);

  void drop(std::size_t index) { entries_.erase(index); }

 private:
  struct Entry {
    std::unique_ptr<Executor> executor;
    std::int64_t asked_at = 0;
  };
  void drop_last();

  Make make_;
  std::map<std::size_t, Entry> entries_;
  std::int64_t asked_ = 0;
};

}  // namespace harpe
