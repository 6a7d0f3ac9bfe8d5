#include "exec/cuda/actions/read_in_place.h"

#include <algorithm>
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

enum class Reads : std::uint8_t { Elsewhere, InPlace, Unfit };

Reads redirect(GemmPieceSpec& piece, std::int64_t rows, std::span<const PlaceMap> moves) {
  if (!is_moved(moves, piece.a)) return Reads::Elsewhere;
  const Extent extents[] = {{rows, piece.stride}, {piece.k_count, 1}};
  const std::optional<MovedArray> there = find_moved(moves, piece.a, extents);
  if (!there || !is_aligned(*there)) return Reads::Unfit;
  piece.a = there->address;
  piece.stride = there->strides[0];
  piece.ready = {};
  return Reads::InPlace;
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

Reads redirect(AttentionChunkSpec& chunk, const AttentionSpec& spec,
               std::span<const PlaceMap> moves) {
  const bool keys_moved = is_moved(moves, chunk.keys.address);
  if (!keys_moved && !is_moved(moves, chunk.values.address)) return Reads::Elsewhere;
  const auto keys = find_tensor(chunk.keys, spec, chunk.rows, spec.query_dim, moves);
  const auto values = find_tensor(chunk.values, spec, chunk.rows, spec.value_dim, moves);
  if (!keys || !values) return Reads::Unfit;
  chunk.keys = *keys;
  chunk.values = *values;
  chunk.ready = {};
  return Reads::InPlace;
}

std::vector<Reads> redirect_all(LaunchSpec& launch, std::span<const PlaceMap> moves) {
  std::vector<Reads> reads;
  if (auto* const product = std::get_if<GemmSpec>(&launch)) {
    for (GemmPanelSpec& panel : product->panels) {
      for (GemmPieceSpec& piece : panel.pieces) {
        reads.push_back(redirect(piece, panel.rows, moves));
      }
    }
  } else if (auto* const heads = std::get_if<AttentionSpec>(&launch)) {
    for (AttentionChunkSpec& chunk : heads->chunks) {
      reads.push_back(redirect(chunk, *heads, moves));
    }
  }
  return reads;
}

}  // namespace

std::vector<bool> read_in_place(LaunchSpec& launch, std::span<const PlaceMap> moves) {
  LaunchSpec changed = launch;
  const std::vector<Reads> reads = redirect_all(changed, moves);
  std::vector<bool> in_place(reads.size(), false);
  if (std::ranges::find(reads, Reads::Unfit) != reads.end()) return in_place;
  launch = std::move(changed);
  for (std::size_t i = 0; i < reads.size(); ++i) in_place[i] = reads[i] == Reads::InPlace;
  return in_place;
}

}  // namespace harpe::cuda
