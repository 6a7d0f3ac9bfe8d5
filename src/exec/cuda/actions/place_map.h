#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "exec/actions/action.h"
#include "exec/cuda/actions/launch_spec.h"

namespace harpe::cuda {

// One move as a map of places, in elements from where each side begins; of ragged rows, all there
// may be. Along it: from what it reads to what it writes; against it: back.
class PlaceMap {
 public:
  enum class Way : std::uint8_t { Along, Against };
  PlaceMap(const actions::Assign& move, Way way);

  [[nodiscard]] const actions::View& source() const { return *source_; }
  [[nodiscard]] const actions::View& target() const { return *target_; }
  [[nodiscard]] std::int64_t elements() const { return elements_; }

  // Where a place of the source comes to lie in the target; none where it is not moved.
  [[nodiscard]] std::optional<std::int64_t> to(std::int64_t from) const;

 private:
  struct Loop {
    std::int64_t length;
    std::int64_t to;
    std::int64_t from;
  };
  const actions::View* source_;
  const actions::View* target_;
  std::int64_t elements_;
  std::vector<Loop> loops_;  // by descending step of the source
};

// An array of some dimensions: how many steps of how many elements each.
struct Extent {
  std::int64_t count = 1;
  std::int64_t stride = 0;
};

// An array that lies in the source of one of the maps, where that takes it: its first element, and
// the strides there, in the order of the extents. None where it is not whole, or no such array
// there.
struct MovedArray {
  const PlaceMap* map = nullptr;
  DeviceAddress address = 0;
  std::vector<std::int64_t> strides;
};
// Whether one of the maps takes what is there.
[[nodiscard]] bool is_moved(std::span<const PlaceMap> maps, DeviceAddress address);
[[nodiscard]] std::optional<MovedArray> find_moved(std::span<const PlaceMap> maps,
                                                   DeviceAddress address,
                                                   std::span<const Extent> extents);

}  // namespace harpe::cuda
