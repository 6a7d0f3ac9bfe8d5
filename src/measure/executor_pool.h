#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "exec/executor.h"
#include "support/diag.h"

namespace harpe {

// True if freeing memory elsewhere might help.
[[nodiscard]] bool may_be_short_of_memory(const Diag& diag);

// Executors of several plans that take turns; as many exist at a time as fit into memory.
class ExecutorPool {
 public:
  using Make = std::function<Checked<std::unique_ptr<Executor>>(std::size_t index)>;

  explicit ExecutorPool(Make make) : make_(std::move(make)) {}

  struct Got {
    Executor* executor = nullptr;  // valid until the next call
    bool is_new = false;
  };
  // Returns the executor, which is made if it is missing. While memory is short, others are
  // destroyed: first the most recently used one, whose next turn is the farthest away. Errors:
  // those of making it alone.
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
