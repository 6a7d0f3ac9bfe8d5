#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace harpe {

// An index that cannot be mistaken for another kind of index.
template <class Tag>
struct Id {
  std::int32_t value = -1;

  constexpr Id() = default;
  constexpr explicit Id(std::int64_t v) : value(static_cast<std::int32_t>(v)) {}
  [[nodiscard]] constexpr bool valid() const { return value >= 0; }
  [[nodiscard]] constexpr std::size_t index() const { return static_cast<std::size_t>(value); }
  friend constexpr auto operator<=>(const Id&, const Id&) = default;
};

using RankId = Id<struct RankTag>;  // row-major index over the mesh: major axis first, last fastest
using QueueId = Id<struct QueueTag>;  // index into Plan::queues
using AllocId = Id<struct AllocTag>;  // index into Plan::allocs
using TaskId = Id<struct TaskTag>;    // index into Plan::tasks

}  // namespace harpe

template <class Tag>
struct std::hash<harpe::Id<Tag>> {
  std::size_t operator()(const harpe::Id<Tag>& id) const noexcept {
    return std::hash<std::int32_t>{}(id.value);
  }
};
