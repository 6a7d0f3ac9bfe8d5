#include "exec/cuda/actions/read_in_place.h"

#include <optional>

namespace harpe::cuda {
namespace {

constexpr DeviceAddress kAlignment = 16;  // of what the copy engine of a multiprocessor reads

bool is_aligned(const MovedArray& array) {
  const std::int64_t size = size_in_bytes(array.map->target().dtype);
  if (array.address % kAlignment != 0 || array.strides.back() != 1) return false;
  for (std::size_t i = 0; i + 1 < array.strides.size(); ++i) {
    if (static_cast<DeviceAddress>(array.strides[i] * size) % kAlignment != 0) return false;
  }
  return true;
}

bool redirect(GemmPieceSpec& piece, std::int64_t rows, std::span<const PlaceMap> moves) {
  const Extent extents[] = {{rows, piece.stride}, {piece.k_count, 1}};
  const std::optional<MovedArray> there = find_moved(moves, piece.a, extents);
  if (!there || !is_aligned(*there)) return false;
  piece.a = there->address;
  piece.stride = there->strides[0];
  piece.ready = {};
  return true;
}

std::optional<HeadTensor> find_tensor(const HeadTensor& tensor, const AttentionSpec& spec,
                                      std::int64_t rows, std::int64_t columns,
                                      std::span<const PlaceMap> moves) {
  const Extent extents[] = {{spec.batch, tensor.strides.batch},
                            {rows, tensor.strides.row},
                            {spec.kv_heads, tensor.strides.head},
                            {columns, 1}};
  const std::optional<MovedArray> there = find_moved(moves, tensor.address, extents);
  if (!there || !is_aligned(*there)) return std::nullopt;
  return HeadTensor{
      .address = there->address,
      .strides = {.batch = there->strides[0], .row = there->strides[1], .head = there->strides[2]}};
}

bool redirect(AttentionChunkSpec& chunk, const AttentionSpec& spec,
              std::span<const PlaceMap> moves) {
  const auto keys = find_tensor(chunk.keys, spec, chunk.rows, spec.query_dim, moves);
  const auto values = find_tensor(chunk.values, spec, chunk.rows, spec.value_dim, moves);
  if (!keys || !values) return false;
  chunk.keys = *keys;
  chunk.values = *values;
  chunk.ready = {};
  return true;
}

}  // namespace

std::vector<bool> read_in_place(LaunchSpec& launch, std::span<const PlaceMap> moves) {
  std::vector<bool> in_place;
  if (auto* const product = std::get_if<GemmSpec>(&launch)) {
    for (GemmPanelSpec& panel : product->panels) {
      for (GemmPieceSpec& piece : panel.pieces) {
        in_place.push_back(redirect(piece, panel.rows, moves));
      }
    }
  } else if (auto* const heads = std::get_if<AttentionSpec>(&launch)) {
    for (AttentionChunkSpec& chunk : heads->chunks) {
      in_place.push_back(redirect(chunk, *heads, moves));
    }
  }
  return in_place;
}

}  // namespace harpe::cuda
