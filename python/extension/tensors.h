#pragma once

#include <nanobind/ndarray.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "extension/records.h"

namespace harpe::python {

struct ExchangeTable;  // of DLPack

// Accesses torch's tensors through DLPack's C exchange API, which takes tens of nanoseconds per
// tensor. Requires the interpreter's lock.
class TensorExchange {
 public:
  // `type`: torch.Tensor. Raises TypeError if it lacks this API (PyTorch below 2.10).
  explicit TensorExchange(nb::handle type);

  // Describes a tensor; valid while the tensor lives and keeps its shape. None: not a tensor, or in
  // memory of neither the host nor CUDA.
  [[nodiscard]] std::optional<nb::dlpack::dltensor> describe(nb::handle tensor) const;
  // PyTorch's current stream, a cudaStream_t; null on the host.
  [[nodiscard]] void* find_stream(nb::dlpack::device device) const;
  // A dense tensor over memory that stays alive as long as it and its views.
  [[nodiscard]] nb::object adopt(std::shared_ptr<std::byte> memory, nb::dlpack::dtype dtype,
                                 const std::vector<std::int64_t>& shape,
                                 nb::dlpack::device device) const;

 private:
  nb::object capsule_;  // holds the table
  const ExchangeTable* table_;
};

}  // namespace harpe::python
