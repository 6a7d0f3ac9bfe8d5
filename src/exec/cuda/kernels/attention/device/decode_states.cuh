#pragma once

#include "exec/cuda/device/fences.cuh"
#include "exec/cuda/device/parts.cuh"
#include "exec/cuda/kernels/attention/device/decode_column.cuh"

// The states of parts in memory, without flags: that memory holds kAbsent wherever no value is, and
// no stored value equals it. One block leaves a state there; another polls until every value has
// arrived (relaxed, at GPU scope) and stores kAbsent back for the next launch.
namespace harpe::device {

// The thread's two of eight columns.
template <DecodeConfig kConfig>
struct DecodeEight {
  DecodeColumn<kConfig> first;
  DecodeColumn<kConfig> second;

  // The sums of a block of values.
  HP_DEVICE void set_sums(int block, const float4& quad) {
    first.sums[2 * block] = quad.x;
    second.sums[2 * block] = quad.y;
    first.sums[2 * block + 1] = quad.z;
    second.sums[2 * block + 1] = quad.w;
  }
  [[nodiscard]] HP_DEVICE float4 sums(int block) const {
    return {first.sums[2 * block], second.sums[2 * block], first.sums[2 * block + 1],
            second.sums[2 * block + 1]};
  }
  // References and sums of weights.
  HP_DEVICE void set_weights(const float4& columns) {
    first.reference = columns.x;
    first.weights = columns.y;
    second.reference = columns.z;
    second.weights = columns.w;
  }
  [[nodiscard]] HP_DEVICE float4 weights() const {
    return {first.reference, first.weights, second.reference, second.weights};
  }
};

// A state has, for each eight columns, in units of four floats: sums [block of values][thread],
// then references and sums of weights [lane % 4].
template <DecodeConfig kConfig>
class DecodeStates {
  using Column = DecodeColumn<kConfig>;
  static constexpr int kLanes = 8;  // of a warp, that hold the same columns
  static constexpr int kBlocks = value_blocks(kConfig);
  static constexpr int kThreads = state_threads(kConfig);
  static constexpr int kEights = kConfig.columns / 8;
  static constexpr int kQuadsOfEight = kBlocks * kThreads + 4;
  static constexpr int kQuads = kEights * kQuadsOfEight;  // of a state
  static_assert(kQuads * 4 == state_floats(kConfig));

 public:
  using Eight = DecodeEight<kConfig>;
  // Eights that are fetched at once; larger states in turns.
  static constexpr int kFetched = kBlocks == 1 ? kEights : 1;
  // States that fit in shared memory at once, where the ring was.
  static constexpr int kMostFetched =
      kConfig.slots * slot_bytes(kConfig) / (kFetched * kQuadsOfEight * 16);

  // `first`: the block with the first part of the pair.
  HP_DEVICE DecodeStates(const DecodeShared<kConfig>& shared, const DecodePlace& place, int first)
      : states_(reinterpret_cast<float4*>(shared.sync().results.states +
                                          std::int64_t{first} * state_floats(kConfig))),
        fetched_(reinterpret_cast<float4*>(shared.slot(0))),
        place_(place) {}

  // The thread's sums of a block of values, by all threads that hold sums.
  HP_DEVICE void leave_sums(int part, int eight, int block, const float4& sums) const {
    store(states_ + part * kQuads + eight * kQuadsOfEight + block * kThreads + place_.thread, sums);
  }
  // References and sums of weights, by the first four threads.
  HP_DEVICE void leave_weights(int part, int eight, const float4& weights) const {
    store(states_ + part * kQuads + eight * kQuadsOfEight + kBlocks * kThreads + place_.thread,
          weights);
  }

  // Waits for kFetched eights, from `eight` on, of `count` states, and moves them to shared memory;
  // state i is that of part_of(i). All warps of consumers divide them, so that each waits for few,
  // in code that is short, because it runs once. Requires: count <= kMostFetched; the ring's tiles
  // have all been multiplied, and no more will come; a barrier before add().
  template <class PartOf>
  HP_DEVICE void fetch(int eight, int count, const PartOf& part_of) const {
#pragma unroll 1
    for (int unit = place_.thread / 32; unit < count * kUnits; unit += kDecodeWarps) {
      const int state = unit / kUnits;
      const int begin = unit % kUnits * kRows * 32 + place_.lane;
      float4* const from = states_ + part_of(state) * kQuads + eight * kQuadsOfEight + begin;
      float4* const to = fetched_ + state * kRun + begin;
      float4 quads[kRows];
      std::uint32_t most = kAbsent;  // no value exceeds it
      while (most == kAbsent) {
        most = 0;
#pragma unroll
        for (int row = 0; row < kRows; ++row) {
          if (begin + row * 32 < kRun) quads[row] = load(from + row * 32);
        }
#pragma unroll
        for (int row = 0; row < kRows; ++row) {
          if (begin + row * 32 < kRun) most = max(most, most_of(quads[row]));
        }
      }
      const float absent = __uint_as_float(kAbsent);
#pragma unroll
      for (int row = 0; row < kRows; ++row) {
        if (begin + row * 32 >= kRun) continue;
        to[row * 32] = quads[row];
        from[row * 32] = {absent, absent, absent, absent};
      }
    }
    __syncwarp();  // some lanes may have waited longer
  }

  // Adds `count` fetched states to `own`, by the at-th of their eights. Lanes that hold the same
  // columns divide the states to find the factors, so the loop over all states is short.
  HP_DEVICE void add(Eight& own, int count, int at) const {
    const float4* const sums = fetched_ + at * kQuadsOfEight + place_.thread;
    const float4* const weights = fetched_ + at * kQuadsOfEight + kBlocks * kThreads;
#pragma unroll 1
    for (int first = 0; first < count; first += kLanes) {
      const int end = count - first < kLanes ? count - first : kLanes;
      const int state = place_.lane / 4;
      Eight other{};
      if (state < end) other.set_weights(weights[(first + state) * kRun + place_.lane % 4]);
      const float factors[2] = {scale(own.first, other.first), scale(own.second, other.second)};
#pragma unroll 2
      for (int i = 0; i < end; ++i) {
        const int lane = i * 4 + place_.lane % 4;
        const float one = __shfl_sync(0xFFFFFFFF, factors[0], lane);
        const float two = __shfl_sync(0xFFFFFFFF, factors[1], lane);
#pragma unroll
        for (int block = 0; block < kBlocks; ++block) {
          other.set_sums(block, sums[(first + i) * kRun + block * kThreads]);
        }
        add_sums(own.first, other.first, one);
        add_sums(own.second, other.second, two);
      }
    }
  }

 private:
  static constexpr int kRun = kFetched * kQuadsOfEight;  // what is fetched of a state
  static constexpr int kRows = 9;                        // of a warp, fetched at once
  static constexpr int kUnits = (kRun + kRows * 32 - 1) / (kRows * 32);

  HP_DEVICE static void store(float4* to, const float4& quad) {
    store_part(reinterpret_cast<uint4*>(to), present(quad.x), present(quad.y), present(quad.z),
               present(quad.w));
  }

  HP_DEVICE static float4 load(const float4* from) {
    const uint4 part = load_part(reinterpret_cast<const uint4*>(from));
    return {__uint_as_float(part.x), __uint_as_float(part.y), __uint_as_float(part.z),
            __uint_as_float(part.w)};
  }

  HP_DEVICE static std::uint32_t most_of(const float4& quad) {
    return max(max(__float_as_uint(quad.x), __float_as_uint(quad.y)),
               max(__float_as_uint(quad.z), __float_as_uint(quad.w)));
  }

  // Moves `own` to the highest reference of all states, and adds their weights. The result is the
  // factor of the state that the lane has.
  HP_DEVICE static float scale(Column& own, const Column& other) {
    const float reference = max_of_rows(fmaxf(reference_of(own), reference_of(other)));
    rescale(own, reference);
    const float factor = other.weights != 0 ? exp2_fast(other.reference - reference) : 0.0F;
    own.weights += sum_of_rows(other.weights * factor);
    return factor;
  }

  HP_DEVICE static void add_sums(Column& own, const Column& other, float factor) {
#pragma unroll
    for (int i = 0; i < own.kSums; ++i) own.sums[i] += other.sums[i] * factor;
  }

  float4* states_;
  float4* fetched_;
  DecodePlace place_;
};

}  // namespace harpe::device
