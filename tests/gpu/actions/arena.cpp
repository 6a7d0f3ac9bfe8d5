#include "tests/gpu/actions/arena.h"

#include <cmath>
#include <cstring>

#include "ir/rounding.h"

namespace harpe::testing_support {
namespace {

constexpr std::int64_t kGuard = 256;
constexpr std::byte kPoison{0xa5};

double read(DType dtype, const std::byte* at) {
  const auto as = [&]<class T>(T value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (dtype) {
    case DType::F64:
      return as(double{});
    case DType::F32:
      return static_cast<double>(as(float{}));
    case DType::F16:
      return static_cast<double>(widen_f16(as(std::uint16_t{})));
    case DType::BF16:
      return static_cast<double>(widen_bf16(as(std::uint16_t{})));
    default:
      return static_cast<double>(as(std::uint8_t{}));
  }
}

void write(DType dtype, std::byte* at, double value) {
  const auto put = [&](auto bits) { std::memcpy(at, &bits, sizeof bits); };
  switch (dtype) {
    case DType::F64:
      return put(value);
    case DType::F32:
      return put(static_cast<float>(value));
    case DType::F16:
      return put(narrow_f16(static_cast<float>(value)));
    case DType::BF16:
      return put(narrow_bf16(static_cast<float>(value)));
    default:
      std::memset(at, static_cast<int>(value * 100),
                  static_cast<std::size_t>(size_in_bytes(dtype)));
  }
}

bool agree(double expected, double found, double bound) {
  if (expected == found || (std::isnan(expected) && std::isnan(found))) return true;
  return std::fabs(expected - found) <= bound * std::max(1.0, std::fabs(expected));
}

}  // namespace

std::int64_t Arena::add(DType dtype, std::int64_t elements, double bound, std::int64_t shift) {
  const std::int64_t size = size_in_bytes(dtype);
  const auto end = static_cast<std::int64_t>(bytes_.size());
  const std::int64_t begin = (end + kGuard) / kGuard * kGuard + kGuard + shift * size;
  bytes_.resize(static_cast<std::size_t>(begin + elements * size + kGuard), kPoison);
  std::uniform_real_distribution<double> numbers(-1, 1);
  for (std::int64_t at = 0; at < elements; ++at) {
    write(dtype, bytes_.data() + begin + at * size, numbers(random_));
  }
  regions_.push_back({begin, elements, dtype, bound});
  return begin;
}

std::string Arena::compare(const std::vector<std::byte>& expected,
                           const std::vector<std::byte>& found) const {
  std::vector<bool> near(expected.size(), false);  // bytes compared within a bound
  for (const Region& region : regions_) {
    const std::int64_t size = size_in_bytes(region.dtype);
    if (region.bound == 0) continue;
    for (std::int64_t at = 0; at < region.elements; ++at) {
      const std::int64_t place = region.begin + at * size;
      const double one = read(region.dtype, expected.data() + place);
      const double other = read(region.dtype, found.data() + place);
      if (!agree(one, other, region.bound)) {
        return "element " + std::to_string(at) + " of the region at " +
               std::to_string(region.begin) + ": " + std::to_string(one) + " and " +
               std::to_string(other) + ", bound " + std::to_string(region.bound);
      }
      for (std::int64_t byte = 0; byte < size; ++byte) {
        near[static_cast<std::size_t>(place + byte)] = true;
      }
    }
  }
  for (std::size_t at = 0; at < expected.size(); ++at) {
    if (!near[at] && expected[at] != found[at]) return "byte " + std::to_string(at) + " differs";
  }
  return "";
}

}  // namespace harpe::testing_support
