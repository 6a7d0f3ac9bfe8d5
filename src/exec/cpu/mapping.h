#pragma once

#include <cstddef>
#include <cstdint>

namespace harpe::cpu {

// Pages of this process only.
class Mapping {
 public:
  // Zeroed; pages are committed on first touch.
  [[nodiscard]] static Mapping memory(std::int64_t bytes);
  // Reserved addresses without memory: touching one ends the process.
  [[nodiscard]] static Mapping addresses(std::int64_t bytes);
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  Mapping(std::int64_t bytes, int protection);

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace harpe::cpu
