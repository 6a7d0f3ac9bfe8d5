#pragma once

#include <atomic>
#include <cstdint>

namespace harpe::transport {

// The work of a rank's proxy towards one other rank.
struct Counters {
  std::int64_t puts = 0;
  std::int64_t bytes = 0;
  std::int64_t signals = 0;
  std::int64_t nic_fences = 0;  // writes with a fence of the provider
  std::int64_t quiets = 0;      // ordering points at which the proxy waited, or would have waited
  std::int64_t stalled_ns = 0;  // duration of these waits
  std::int64_t full = 0;        // how often the provider had no room
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

// One counter while the proxy counts: one writer, any number of readers.
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
