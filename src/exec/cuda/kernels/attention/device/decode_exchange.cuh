#pragma once

#include "exec/cuda/device/wait.cuh"
#include "exec/cuda/kernels/attention/device/decode_column.cuh"
#include "exec/cuda/signals/device/signal.cuh"

// Kernels that store heads at several places. A block that ends a pair stores the heads of a
// peer in the peer's memory as f32 states and counts them; the last count raises the peer's signal.
// Heads that stay are kept in this rank's memory, each value by the thread that holds it. After all
// its other work a block waits for the peers' states and combines its own with them in order.
// Blocks send all states before they wait, so ranks never wait in a cycle.
namespace harpe::device {

// Where a thread's share of another rank's state of a column lies.
struct DecodeSource {
  const float* values;
  const float* lse;
};

// Used by all consumer threads of the block that ends a pair.
template <DecodeConfig kConfig>
class DecodeOutbox {
 public:
  using Column = DecodeColumn<kConfig>;

  HP_DEVICE DecodeOutbox(const DecodeShared<kConfig>& shared, const DecodePlace& place)
      : exchange_(shared.exchange()),
        results_(shared.sync().results),
        cuts_(shared.sync().cuts),
        place_(place) {}

  // Where the thread's share of a column is stored or kept. Requires: the column is in use.
  [[nodiscard]] HP_DEVICE DecodeTarget target(int sequence, int group, int column) const {
    const int head = head_of(group, column);
    const DecodeResult& result = exchange_.results[head / exchange_.heads];
    if (result.addends > 0) return {nullptr, nullptr, kept_at(sequence, group, column)};
    return target_in<Element::F32>(result, sequence, head, column);
  }

  HP_DEVICE void store(const Column& own, const DecodeTarget& to) const {
    if (to.kept == nullptr) {
      store_column<Element::F32>(own, to);
      return;
    }
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      to.kept[block * kThreads] =
          make_float4(own.reference, own.weights, own.sums[2 * block], own.sums[2 * block + 1]);
    }
  }

  // Requires: a barrier after all threads' stores of the pair. One thread per result fences at
  // system scope and counts the pair, and with the last one raises the signal (count_stored).
  HP_DEVICE void count(int group) const {
    const int index = place_.thread;
    if (index >= exchange_.result_count) return;
    const DecodeResult& result = exchange_.results[index];
    const int heads = exchange_.heads.number;
    const int first = group * results_.group.number;
    const bool has_heads =
        first < (index + 1) * heads && first + results_.group.number > index * heads;
    if (!has_heads || result.arrivals == 0) return;
    count_stored(result.done, result.arrivals, result.raise, exchange_.wait);
  }

  // Combines the kept heads of `count` pairs from `first` on, which this block has ended, with
  // their addends. By all consumer threads, also those without sums. Places are found before the
  // addends are there, because code takes long when it runs for the first time.
  HP_DEVICE void add_up(int first, int count, bool has_sums) const {
    if (exchange_.addend_count == 0) return;
    bool are_there = false;
#pragma unroll 1
    for (int pair = first; pair < first + count; ++pair) {
#pragma unroll 1
      for (int begin = 0; begin < kColumns; begin += kTogether) {
        Kept kept[kTogether];
        DecodeSource from[kTogether];
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
          if (has_sums) kept[i] = take(pair, place_.column(begin + i));
          from[i] = source_of(kept[i], 0);
        }
        if (!are_there) {
          are_there = await_addends();
          let_next_kernel_begin();
          if (!are_there) return;
        }
        for (int addend = 0; addend < exchange_.addend_count; ++addend) {
          Column others[kTogether];
#pragma unroll
          for (int i = 0; i < kTogether; ++i) others[i] = load(from[i]);
#pragma unroll
          for (int i = 0; i < kTogether; ++i) from[i] = source_of(kept[i], addend + 1);
#pragma unroll
          for (int i = 0; i < kTogether; ++i) add_state(kept[i].own, others[i]);
        }
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
          if (kept[i].to.output != nullptr) store_column<kConfig.output>(kept[i].own, kept[i].to);
        }
      }
    }
  }

 private:
  // A column that stays.
  struct Kept {
    Column own{};
    DecodeTarget to{};  // nowhere: the column is not in use, or stays elsewhere
    int result = 0;
    int sequence = 0;
    int query = 0;
    int head = 0;  // of the result
  };

  static constexpr int kColumns = kConfig.columns / 4;  // of a thread
  static constexpr int kBlocks = value_blocks(kConfig);
  static constexpr int kTogether = 2;  // columns of a thread at once
  static constexpr int kThreads = state_threads(kConfig);
  static constexpr int kAwait = 4;  // named barrier
  static constexpr bool kCuts = cuts_heads(kConfig);

  [[nodiscard]] HP_DEVICE int head_of(int group, int column) const {
    return group * results_.group.number + column % results_.group;
  }

  // The first block of values of a column; the next one is kThreads further. The i-th column of a
  // thread is i / 2 * 8 + lane % 4 * 2 + i % 2.
  [[nodiscard]] HP_DEVICE float4* kept_at(int sequence, int group, int column) const {
    std::int64_t pair = std::int64_t{sequence} * results_.kv_heads.number + group;
    if constexpr (kCuts) pair = index_of(cuts_, results_.kv_heads, {sequence, group});
    const int own = column / 8 * 2 + column % 2;
    return reinterpret_cast<float4*>(exchange_.kept) +
           (pair * kColumns + own) * (kBlocks * kThreads) + place_.thread;
  }

  template <Element kOutput>
  [[nodiscard]] HP_DEVICE DecodeTarget target_in(const DecodeResult& result, int sequence, int head,
                                                 int column) const {
    const int query = column / results_.group;
    const int of_result = head % exchange_.heads;
    float* const lse = result.lse == nullptr || place_.thread >= 4
                           ? nullptr
                           : result.lse + offset_of(result.lse_strides, sequence, query, of_result);
    const std::int64_t at =
        offset_of(result.strides, sequence, query, of_result) + value_of<kConfig>(place_);
    return {element_of<kOutput>(result.output, at), lse, nullptr};
  }

  // One thread per addend acquires its flag; the vote's barrier orders the others behind them.
  // False if a wait failed: then nothing is stored.
  [[nodiscard]] HP_DEVICE bool await_addends() const {
    Waiter waiter(exchange_.wait);
    if (place_.thread == 0) note_idle(exchange_.wait, [] { return true; }, [] { return false; });
    if (place_.thread < exchange_.addend_count) {
      const FlagWait& ready = exchange_.addends[place_.thread].ready;
      if (ready.flag != nullptr) {
        note_awaited(exchange_.wait, ready);
        waiter.watch(ready, place_.thread);
      }
    }
    const bool expired = any_of_threads(kAwait, kDecodeConsumers, waiter.poisoned());
    if (place_.thread == 0) note_stand(exchange_.wait);
    return !expired;
  }

  [[nodiscard]] HP_DEVICE Kept take(int pair, int column) const {
    Kept kept;
    if (column >= results_.columns) return kept;
    kept.sequence = pair / results_.kv_heads;
    int group = pair % results_.kv_heads;
    if constexpr (kCuts) {
      const DecodePair of_cut = pair_of(cuts_, kept.sequence, group);
      kept.sequence = of_cut.sequence;
      group = of_cut.group;
    }
    const int head = head_of(group, column);
    kept.result = head / exchange_.heads;
    const DecodeResult& result = exchange_.results[kept.result];
    if (result.addends == 0) return kept;
    kept.query = column / results_.group;
    kept.head = head % exchange_.heads;
    kept.to = target_in<kConfig.output>(result, kept.sequence, head, column);
    const float4* const from = kept_at(kept.sequence, group, column);
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      const float4 quad = from[block * kThreads];
      kept.own.reference = quad.x;
      kept.own.weights = quad.y;
      kept.own.sums[2 * block] = quad.z;
      kept.own.sums[2 * block + 1] = quad.w;
    }
    return kept;
  }

  // Where the thread's share of a column of an addend lies; null: the column has no such addend.
  [[nodiscard]] HP_DEVICE DecodeSource source_of(const Kept& kept, int addend) const {
    const DecodeResult& result = exchange_.results[kept.result];
    const bool has = addend >= result.first_addend && addend < result.first_addend + result.addends;
    if (kept.to.output == nullptr || !has) return {};
    const DecodeAddend& from = exchange_.addends[addend];
    return {from.output + offset_of(from.strides, kept.sequence, kept.query, kept.head) +
                value_of<kConfig>(place_),
            from.lse + offset_of(from.lse_strides, kept.sequence, kept.query, kept.head)};
  }

  // Bypasses L1, since another GPU may have stored the state.
  [[nodiscard]] HP_DEVICE static Column load(const DecodeSource& from) {
    constexpr float kLog2e = 1.4426950408889634F;
    Column state{};
    if (from.values == nullptr) return state;
    const float lse = __ldcg(from.lse);
#pragma unroll
    for (int i = 0; i < state.kSums; ++i) state.sums[i] = __ldcg(from.values + value_step(i));
    state.reference = lse * kLog2e;
    state.weights = lse == decode_nothing() ? 0.0F : 1.0F;
    return state;
  }

  const DecodeExchange& exchange_;
  const DecodeResults& results_;
  const DecodeCuts& cuts_;
  const DecodePlace& place_;
};

}  // namespace harpe::device
