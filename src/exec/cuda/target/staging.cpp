#include "exec/cuda/target/staging.h"

#include <vector>

namespace harpe::cuda {
namespace {

using actions::Assign;
using actions::Rows;
using actions::View;

constexpr std::int64_t kAlign = 16;

std::int64_t rounded(std::int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

bool is_counted(const Assign& move) { return move.slots.used.rows != nullptr; }

// Elements of one slot row.
std::int64_t turn_of(const Assign& move) { return move.rows.count() * move.rows.length(); }

std::int64_t data_bytes(const Assign& move) {
  return rounded(move.slots.capacity * turn_of(move) * size_in_bytes(move.to.dtype));
}

// The loops of the walk, the row itself last, and the strides of the image, `to` and `from` in
// each.
struct ImageWalk {
  std::vector<std::int64_t> lengths;
  std::vector<std::int64_t> dense;
  std::vector<std::int64_t> to;
  std::vector<std::int64_t> from;
};

ImageWalk image_walk_of(const Assign& move) {
  ImageWalk walk{.lengths = move.rows.loops(),
                 .dense = {},
                 .to = move.rows.strides(0),
                 .from = move.rows.strides(1)};
  walk.lengths.push_back(move.rows.length());
  walk.to.push_back(1);
  walk.from.push_back(1);
  walk.dense.resize(walk.lengths.size());
  std::int64_t apart = 1;
  for (std::size_t at = walk.lengths.size(); at-- > 0;) {
    walk.dense[at] = apart;
    apart *= walk.lengths[at];
  }
  return walk;
}

View image_view(const Assign& move, std::byte* image) {
  return {.data = image, .dtype = move.to.dtype, .strides = {}};
}

}  // namespace

std::int64_t image_bytes(const Assign& move) {
  if (move.rows.count() == 0) return 0;
  return data_bytes(move) + (is_counted(move) ? kAlign : 0);
}

StagedMove stage(const Assign& move, std::byte* here, std::byte* there) {
  if (move.rows.count() == 0) return {.pack = move, .land = move};
  const ImageWalk walk = image_walk_of(move);
  const std::vector<std::int64_t> packed[] = {walk.dense, walk.from};
  const std::vector<std::int64_t> landed[] = {walk.to, walk.dense};
  StagedMove staged;
  staged.pack = {.to = image_view(move, here),
                 .from = move.from,
                 .rows = Rows(walk.lengths, packed),
                 .slots = move.slots};
  staged.land = {.to = move.to,
                 .from = image_view(move, there),
                 .rows = Rows(walk.lengths, landed),
                 .slots = move.slots};
  staged.pack.slots.strides[0] = turn_of(move);
  staged.land.slots.strides[1] = turn_of(move);
  if (is_counted(move)) {
    staged.pack.slots.result = reinterpret_cast<std::int32_t*>(here + data_bytes(move));
    staged.land.slots.used.rows = reinterpret_cast<std::int32_t*>(there + data_bytes(move));
  }
  return staged;
}

}  // namespace harpe::cuda
