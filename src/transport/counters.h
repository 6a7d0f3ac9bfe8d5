#pragma once

#include <atomic>
#include <cstdint>

namespace harpe::transport {

// What a rank's proxy did towards one other rank.
struct Counters {
  std::int64_t puts = 0;
  std::int64_t bytes = 0;
  std::int64_t signals = 0;
  std::int64_t nic_fences = 0;  // writes that asked the provider to order them
  std::int64_t quiets = 0;      // ordering points at which the proxy waited, or would have
  std::int64_t stalled_ns = 0;  // how long it did
  std::int64_t full = 0;        // the provider took no more for the moment
  friend bool operator==(const Counters&, const Counters&) = default;

  Counters& operator+=(const Counters& other) {
    puts += other.puts;
    bytes += other.bytes;
    signals += other.signals;
    nic_fences += other.nic_fences;
    quiets += other.quiets;
    stalled_ns += other.stalled_ns;
    full += other.full;
    return *this;
  }
};

// One of them while the proxy counts: one writer, readers at any time.
class Count {
 public:
  void add(std::int64_t amount) {
    value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  [[nodiscard]] std::int64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

struct LiveCounters {
  Count puts, bytes, signals, nic_fences, quiets, stalled_ns, full;

  [[nodiscard]] Counters read() const {
    return {.puts = puts.get(),
            .bytes = bytes.get(),
            .signals = signals.get(),
            .nic_fences = nic_fences.get(),
            .quiets = quiets.get(),
            .stalled_ns = stalled_ns.get(),
            .full = full.get()};
  }
};

}  // namespace harpe::transport
