#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/diag.h"

namespace harpe::cuda {

using Blob = std::vector<std::byte>;

// Why ranks in processes of their own did not come together.
struct BootstrapError {
  int rank = 0;         // that says so
  std::string address;  // where they meet
  std::string reason;
};
// G077.
[[nodiscard]] Diag to_diag(const BootstrapError& error);

// How ranks in processes of their own exchange a few bytes before they reach each other's memory.
class Bootstrap {
 public:
  Bootstrap() = default;
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;
  virtual ~Bootstrap() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int ranks() const = 0;
  // What every rank gave, in their order. Called by all of them, equally often; returns once all
  // have called, or after a limit with an error.
  [[nodiscard]] virtual Result<std::vector<Blob>, BootstrapError> all_gather(
      std::span<const std::byte> own) = 0;
  // The same among those that are left: none of who is gone, or says nothing within the limit;
  // where rank 0 is gone, of nobody else.
  [[nodiscard]] virtual std::vector<std::optional<Blob>> gather_left(
      std::span<const std::byte> own, std::chrono::milliseconds limit) = 0;
};

}  // namespace harpe::cuda
