#pragma once

#include <cstddef>
#include <cstdint>

namespace harpe {

// The purposes of a thread's buffers; kernels that call each other use different ones.
enum class Scratch : std::uint8_t {
  PanelA,
  PanelB,
  PackA,
  PackB,
  Query,
  Key,
  Value,
  Scores,
  Gradients,
  Output,
  Rows,
  Labels
};

// `bytes` of the calling thread's own memory, aligned to 64, with unspecified content. It grows on
// demand and lives until the thread ends; valid until the thread requests the same purpose again.
[[nodiscard]] void* scratch(Scratch purpose, std::size_t bytes);

template <class T>
[[nodiscard]] T* scratch_of(Scratch purpose, std::int64_t elements) {
  return static_cast<T*>(scratch(purpose, static_cast<std::size_t>(elements) * sizeof(T)));
}

}  // namespace harpe
