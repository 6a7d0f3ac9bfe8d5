#include "exec/cuda/kernels/attention/bind_operands.h"

#include <algorithm>

#include "exec/cuda/kernels/attention/attention_arrays.h"

namespace harpe::cuda {

Checked<AttentionChunkSpec> place_chunk(const KernelBinding& binding, const LaunchAlone& alone,
                                        const launch::Arrival& arrival) {
  const auto& spec = alone.spec->get<AttentionSpec>();
  AttentionChunkSpec chunk = spec.chunks.front();
  const std::vector<launch::Place>& from = alone.arrival().reads;
  HP_TRY(const StridedArray keys,
         binding.place(alone, {array_keys(spec, chunk), "keys", 0}, from, arrival.reads));
  HP_TRY(const StridedArray values,
         binding.place(alone, {array_values(spec, chunk), "values", 1}, from, arrival.reads));
  chunk.keys = tensor_at(keys);
  chunk.values = tensor_at(values);
  chunk.ready = binding.await(arrival.when);
  return chunk;
}

Checked<Ok> place_tables(const KernelBinding& binding, const LaunchAlone& alone,
                         const std::vector<launch::Place>& reads, AttentionSpec& spec) {
  std::vector<StridedArray> moved = arrays_tables(spec);
  for (std::size_t i = 0; i < moved.size(); ++i) {
    HP_TRY(moved[i],
           binding.place(alone, {moved[i], "a mask's table", 1 + i}, alone.panel().reads, reads));
    spec.keys_are_fixed = spec.keys_are_fixed && binding.is_fixed(reads[1 + i]);
  }
  if (moved.empty()) return Ok{};
  KeyTables& tables = *spec.tables;
  if (tables.lengths != 0) {
    tables.lengths = moved.front().address;
    tables.length_stride = moved.front().extents.front().stride;
  }
  if (tables.pages == 0) return Ok{};
  tables.pages = moved.back().address;
  tables.batch_stride = moved.back().extents.front().stride;
  tables.page_stride = moved.back().extents.back().stride;
  return Ok{};
}

bool are_keys_fixed(const KernelBinding& binding) {
  return std::ranges::all_of(binding.kernel().arrivals.front().reads,
                             [&](const launch::Place& place) { return binding.is_fixed(place); });
}

}  // namespace harpe::cuda
