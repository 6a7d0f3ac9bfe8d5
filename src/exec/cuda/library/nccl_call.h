#pragma once

#include <cstdint>
#include <vector>

#include "exec/cuda/device/types.h"
#include "exec/cuda/runtime/tensor_map_spec.h"

namespace harpe::library {

class NcclRank;

// Elements in a GPU's memory.
struct Elements {
  cuda::DeviceAddress address = 0;
  std::int64_t count = 0;
  device::Element type = device::Element::BF16;
};

// Data from or to another rank.
struct Message {
  int peer = 0;
  Elements elements;
};

// A rank's part of one operation.
struct NcclCall {
  enum class Kind : std::uint8_t { AllGather, Exchange };

  const NcclRank* rank = nullptr;
  Kind kind = Kind::Exchange;
  Elements part;                  // AllGather: this rank's part
  cuda::DeviceAddress whole = 0;  // AllGather: where all ranks' parts go
  std::vector<Message> sends{};   // Exchange, as the next
  std::vector<Message> receives{};
};

}  // namespace harpe::library
