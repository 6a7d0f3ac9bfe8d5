#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "exec/cuda/runtime/driver_api.h"
#include "exec/cuda/runtime/tensor_map.h"
#include "support/diag.h"

namespace harpe::library {

// Baselines compute in bf16 or f16 and accumulate in f32.
constexpr std::int64_t kElementBytes = 2;
constexpr std::int64_t kFloatBytes = 4;

// Enqueues work in a stream of the calling thread's GPU.
using Step = std::function<Checked<Ok>(CUstream stream)>;

// The address as a pointer, which libraries and kernel arguments need.
template <class T = void>
[[nodiscard]] T* at(cuda::DeviceAddress address) {
  return reinterpret_cast<T*>(address);
}

template <class T>
[[nodiscard]] Checked<T> checked(Result<T, cuda::CudaError> result) {
  if (!result.ok()) return cuda::to_diag(result.error());
  return std::move(result).value();
}

// G080, for a call that a library refuses although it accepted it when it was prepared.
[[nodiscard]] inline Diag refused(std::string_view call, std::string_view library) {
  return make_diag(DiagCode::G080, {{"call", call},
                                    {"library", library},
                                    {"reason", "it refused a call that it had accepted before"}});
}

}  // namespace harpe::library
