#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ir/tensor.h"
#include "support/diag.h"

namespace harpe {

// What the first GPUs have left of their memory.
class GpuMemory {
 public:
  // Errors: G001; G002, G003, G005 to G007.
  [[nodiscard]] static Checked<GpuMemory> watch(int gpus);
  // Bytes, by GPU; empty where a GPU does not say.
  [[nodiscard]] std::vector<std::int64_t> free() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Large tensors, which GPUs read where they lie while this lives: executors are given them in a
// fraction of the time. The others, and those that no GPU can have so, are as they were.
class PinnedTensors {
 public:
  PinnedTensors() = default;
  // Requires: the tensors stay as they are while this lives.
  [[nodiscard]] static PinnedTensors pin(const TensorMap& tensors);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// By how much each got less between two looks, added to `taken`; nothing where one did not say.
void add_taken(const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after,
               std::vector<std::int64_t>& taken);

}  // namespace harpe
