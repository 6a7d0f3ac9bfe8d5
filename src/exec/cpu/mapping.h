#pragma once

#include <cstddef>
#include <cstdint>

namespace harpe::cpu {

// Pages of this process alone.
class Mapping {
 public:
  // Zeros; memory is taken as it is touched.
  [[nodiscard]] static Mapping memory(std::int64_t bytes);
  // Addresses that nothing is behind: touching one ends the process.
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
