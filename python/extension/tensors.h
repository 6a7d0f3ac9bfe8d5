#pragma once

#include <nanobind/ndarray.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "extension/records.h"

namespace harpe::python {

struct ExchangeTable;  // of DLPack

// torch's tensors through DLPack's C exchange API, which takes tens of nanoseconds a tensor. Used
// with the interpreter's lock.
class TensorExchange {
 public:
  // `type`: torch.Tensor. Raises TypeError where it has no such API (PyTorch below 2.10).
  explicit TensorExchange(nb::handle type);

  // What holds as long as the tensor does and keeps its shape. None: it is of another kind of
  // memory than the host's and CUDA's, or no tensor.
  [[nodiscard]] std::optional<nb::dlpack::dltensor> describe(nb::handle tensor) const;
  // PyTorch's current one, a cudaStream_t; null on the host.
  [[nodiscard]] void* find_stream(nb::dlpack::device device) const;
  // A dense tensor over memory that is held as long as it and its views are.
  [[nodiscard]] nb::object adopt(std::shared_ptr<std::byte> memory, nb::dlpack::dtype dtype,
                                 const std::vector<std::int64_t>& shape,
                                 nb::dlpack::device device) const;

 private:
  nb::object capsule_;  // holds the table
  const ExchangeTable* table_;
};

}  // namespace harpe::python
