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

  // Stores or keeps the thread's share of a column. Requires: the column is in use.
  HP_DEVICE void store(const Column& own, int sequence, int group, int column) const {
    const int head = head_of(group, column);
    const DecodeResult& result = exchange_.results[head / exchange_.heads];
    if (result.addends > 0) {
      float4* const to = kept_at(sequence, group, column);
#pragma unroll
      for (int block = 0; block < kBlocks; ++block) {
        to[block * kThreads] = make_float4(own.reference, own.weights, own.sums[2 * block],
                                           own.sums[2 * block + 1]);
      }
    } else {
      put<Element::F32>(own, result, sequence, head, column);
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
  // their addends. By all consumer threads, also those without sums.
  HP_DEVICE void add_up(int first, int count, bool has_sums) const {
    if (exchange_.addend_count == 0 || count == 0) return;
    const bool expired = await_addends();
    let_next_kernel_begin();
    if (expired || !has_sums) return;
    for (int pair = first; pair < first + count; ++pair) {
#pragma unroll(kBlocks == 1 ? kColumns : 1)
      for (int i = 0; i < kColumns; ++i) {
        const int column = place_.column(i);
        if (column < results_.columns) add(pair, column);
      }
    }
  }

 private:
  static constexpr int kColumns = kConfig.columns / 4;  // of a thread
  static constexpr int kBlocks = value_blocks(kConfig);
  static constexpr int kThreads = state_threads(kConfig);
  static constexpr int kAwait = 4;                      // named barrier
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
  HP_DEVICE void put(const Column& own, const DecodeResult& result, int sequence, int head,
                     int column) const {
    const int query = column / results_.group;
    const int of_result = head % exchange_.heads;
    float* const lse = result.lse == nullptr || place_.thread >= 4
                           ? nullptr
                           : result.lse + offset_of(result.lse_strides, sequence, query, of_result);
    store_column<kOutput>(
        own, result.output,
        offset_of(result.strides, sequence, query, of_result) + value_of<kConfig>(place_), lse);
  }

  // One thread per addend acquires its flag; the vote's barrier orders the others behind them. True
  // if a wait failed: then nothing is stored.
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
    return expired;
  }

  HP_DEVICE void add(int pair, int column) const {
    int sequence = pair / results_.kv_heads;
    int group = pair % results_.kv_heads;
    if constexpr (kCuts) {
      const DecodePair of_cut = pair_of(cuts_, sequence, group);
      sequence = of_cut.sequence;
      group = of_cut.group;
    }
    const int head = head_of(group, column);
    const DecodeResult& result = exchange_.results[head / exchange_.heads];
    if (result.addends == 0) return;
    const float4* const from = kept_at(sequence, group, column);
    Column own;
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      const float4 kept = from[block * kThreads];
      own.reference = kept.x;
      own.weights = kept.y;
      own.sums[2 * block] = kept.z;
      own.sums[2 * block + 1] = kept.w;
    }
    for (int i = result.first_addend; i < result.first_addend + result.addends; ++i) {
      add_state(own, load(exchange_.addends[i], sequence, head % exchange_.heads, column));
    }
    put<kConfig.output>(own, result, sequence, head, column);
  }

  // Bypasses L1, since another GPU may have stored the state.
  [[nodiscard]] HP_DEVICE Column load(const DecodeAddend& from, int sequence, int head,
                                      int column) const {
    constexpr float kLog2e = 1.4426950408889634F;
    const int query = column / results_.group;
    const float lse = __ldcg(from.lse + offset_of(from.lse_strides, sequence, query, head));
    const float* const values =
        from.output + offset_of(from.strides, sequence, query, head) + value_of<kConfig>(place_);
    Column state{.reference = lse * kLog2e, .weights = lse == decode_nothing() ? 0.0F : 1.0F};
#pragma unroll
    for (int i = 0; i < state.kSums; ++i) state.sums[i] = __ldcg(values + value_step(i));
    return state;
  }

  const DecodeExchange& exchange_;
  const DecodeResults& results_;
  const DecodeCuts& cuts_;
  const DecodePlace& place_;
};

}  // namespace harpe::device
