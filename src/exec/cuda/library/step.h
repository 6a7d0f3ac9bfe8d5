#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "exec/cuda/runtime/driver_api.h"
#include "exec/cuda/runtime/tensor_map.h"
#include "support/diag.h"

namespace harpe::library {

// Baselines compute in bf16 or f16 and add up in f32.
constexpr std::int64_t kElementBytes = 2;
constexpr std::int64_t kFloatBytes = 4;

// Orders something in a stream of the calling thread's GPU.
using Step = std::function<Checked<Ok>(CUstream stream)>;

// As a pointer, which is what libraries and arguments of kernels take.
template <class T = void>
[[nodiscard]] T* at(cuda::DeviceAddress address) {
  return reinterpret_cast<T*>(address);
}

template <class T>
[[nodiscard]] Checked<T> checked(Result<T, cuda::CudaError> result) {
  if (!result.ok()) return cuda::to_diag(result.error());
  return std::move(result).value();
}

// G080, of a call that a library had agreed to when it was made ready.
[[nodiscard]] inline Diag refused(std::string_view call, std::string_view library) {
  return make_diag(
      DiagCode::G080,
      {{"call", call}, {"library", library}, {"reason", "it refused what it had agreed to"}});
}

}  // namespace harpe::library
