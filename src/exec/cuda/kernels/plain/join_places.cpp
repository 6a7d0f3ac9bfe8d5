#include "exec/cuda/kernels/plain/join_places.h"

#include <algorithm>
#include <cstring>

#include "exec/cuda/kernels/loop_nests.h"

namespace harpe::cuda {
namespace {

using device::MapArgs;
using device::MoveArgs;
using device::StridedPlace;

// Where the operands are, taken out of the arguments: what is left is the batch's.
StridedPlace take_place(MoveArgs& args) {
  const StridedPlace place{.to = args.to, .a = args.from, .b = nullptr, .used = args.used};
  args.to = nullptr;
  args.from = nullptr;
  args.used = {.rows = nullptr, .result = nullptr, .before = 0, .capacity = args.used.capacity};
  return place;
}

StridedPlace take_place(MapArgs& args) {
  const StridedPlace place{.to = args.to, .a = args.a, .b = args.b, .used = args.used};
  args.to = nullptr;
  args.a = nullptr;
  args.b = nullptr;
  args.used = {.rows = nullptr, .result = nullptr, .before = 0, .capacity = args.used.capacity};
  return place;
}

template <class Args>
bool differ_in_places_of(const PlainLaunch& one, const PlainLaunch& other) {
  const auto* const args = std::get_if<Args>(&one.args);
  const auto* const others = std::get_if<Args>(&other.args);
  if (args == nullptr || others == nullptr || one.kernel != other.kernel ||
      one.wide != other.wide) {
    return false;
  }
  Args rest = *args;
  Args rest_of_other = *others;
  const StridedPlace place = take_place(rest);
  const StridedPlace place_of_other = take_place(rest_of_other);
  return rest == rest_of_other && (place.a == nullptr) == (place_of_other.a == nullptr) &&
         (place.b == nullptr) == (place_of_other.b == nullptr);
}

template <class Args>
PlainLaunch with_places(std::span<const LaunchSpec> run, int multiprocessors) {
  constexpr std::int64_t kRounds = 4;  // of all blocks, where all rows are used
  PlainLaunch batch = std::get<PlainLaunch>(run.front());
  auto& args = std::get<Args>(batch.args);
  take_place(args);
  batch.table.resize(run.size() * sizeof(StridedPlace));
  for (std::size_t i = 0; i < run.size(); ++i) {
    Args one = std::get<Args>(std::get<PlainLaunch>(run[i]).args);
    const StridedPlace place = take_place(one);
    std::memcpy(batch.table.data() + i * sizeof place, &place, sizeof place);
  }
  batch.places = static_cast<std::int64_t>(run.size());
  const std::int64_t most = kRounds * kSmallBlocks * multiprocessors;
  batch.blocks = std::min(batch.blocks, divide_up(most, batch.places));
  return batch;
}

}  // namespace

bool differ_in_places(const PlainLaunch& one, const PlainLaunch& other) {
  return differ_in_places_of<MoveArgs>(one, other) || differ_in_places_of<MapArgs>(one, other);
}

std::optional<LaunchSpec> join_places(std::span<const LaunchSpec> run, int multiprocessors) {
  const auto* const first = std::get_if<PlainLaunch>(&run.front());
  const bool fits = first != nullptr && std::ranges::all_of(run, [&](const LaunchSpec& each) {
                      const auto* const plain = std::get_if<PlainLaunch>(&each);
                      return plain != nullptr && differ_in_places(*first, *plain);
                    });
  if (!fits) return std::nullopt;
  return std::holds_alternative<MoveArgs>(first->args) ? with_places<MoveArgs>(run, multiprocessors)
                                                       : with_places<MapArgs>(run, multiprocessors);
}

}  // namespace harpe::cuda
