#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harpe/harpe.h"

namespace harpe {

using Tensors = std::map<std::string, Tensor>;

// One rank's tensors of an executable.
struct RankTensors {
  Tensors tensors;

  RankTensors(const Plan& plan, const Executable& executable, int rank, const Tensors& inputs) {
    for (const LocalTensor& each : executable.tensors()) {
      if (each.role == Buffer::Role::In) {
        tensors[each.name] = shard(plan, each.name, rank, inputs.at(each.name).view()).value();
        continue;
      }
      Tensor& out = tensors[each.name];
      out = {.dtype = each.dtype, .shape = each.shape, .data = {}};
      std::int64_t bytes = size_in_bytes(each.dtype);
      for (const std::int64_t extent : each.shape) bytes *= extent;
      out.data.assign(static_cast<std::size_t>(bytes), std::byte{0xff});
    }
  }

  [[nodiscard]] std::vector<Argument> arguments() {
    std::vector<Argument> all;
    for (auto& [name, tensor] : tensors) all.emplace_back(name, tensor.view());
    return all;
  }
};

// The outputs that all ranks compute together.
inline Tensors run_whole(const Plan& plan, const Tensors& inputs) {
  std::map<std::string, ConstView> views;
  for (const auto& [name, tensor] : inputs) views.emplace(name, tensor.view());
  return run(plan, views).value().outputs;
}

}  // namespace harpe
