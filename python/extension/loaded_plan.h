#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "extension/array.h"
#include "extension/rank.h"

namespace harpe::python {

// An executable. It may be dropped on any thread at any time, so its destructor also takes the
// rank's lock.
class LoadedPlan {
 public:
  LoadedPlan(std::shared_ptr<Rank> rank, std::string program, Executable executable)
      : rank_(std::move(rank)), program_(std::move(program)), executable_(std::move(executable)) {}
  LoadedPlan(LoadedPlan&&) = default;
  ~LoadedPlan();

  [[nodiscard]] Rank& rank() const { return *rank_; }
  [[nodiscard]] const std::vector<LocalTensor>& tensors() const { return executable_->tensors(); }
  [[nodiscard]] ExecutableStatus status() const;
  void launch(const nb::dict& inputs, const nb::dict& outputs, std::uintptr_t stream) const;
  // Executable::take_results; null pointers if it fails, since the launch then reports the error.
  [[nodiscard]] std::vector<std::shared_ptr<std::byte>> take_results(void* stream) const;
  // Tensors must live until the work in `stream` is done.
  void launch(std::span<const Argument> arguments, void* stream) const;

 private:
  void take(const nb::dict& given, Buffer::Role role, Array* arrays,
            std::vector<Argument>& arguments) const;
  void check_name(std::string_view name, Buffer::Role role) const;

  std::shared_ptr<Rank> rank_;
  std::string program_;
  std::optional<Executable> executable_;
};

}  // namespace harpe::python
