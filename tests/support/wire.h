#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <vector>

namespace harpe::test {

struct WireOptions {
  std::chrono::microseconds delay{0};  // one way
  double bytes_per_second = 0;         // sending rate of each host; 0: as fast as this process
};

// The network between test hosts: it reads the packets of their TUN devices and delivers them after
// the delay. It takes the devices' file descriptors and closes them.
class Wire {
 public:
  Wire(std::vector<int> devices, const WireOptions& options);
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  ~Wire();

  // Carries packets until `stop` is set.
  void run(const std::atomic<bool>& stop);
  // Drops all packets from or to a host from here on, as if its cable were pulled.
  void cut(int host) { is_cut_[static_cast<std::size_t>(host)].store(true); }
  // Multiplies the delay and the transmission time of a host's packets from here on.
  void slow(int host, int times) { slowness_[static_cast<std::size_t>(host)].store(times); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Packet {
    Clock::time_point due;
    std::size_t to = 0;
    std::vector<char> bytes;
  };
  void accept(std::size_t from);
  void deliver(Clock::time_point now);
  [[nodiscard]] std::chrono::nanoseconds until_next(Clock::time_point now) const;

  std::vector<int> devices_;
  WireOptions options_;
  std::vector<std::deque<Packet>> under_way_;  // by sender, in the order of delivery
  std::vector<Clock::time_point> free_at_;     // by sender: when its link is free
  std::unique_ptr<std::atomic<bool>[]> is_cut_;
  std::unique_ptr<std::atomic<int>[]> slowness_;  // by sender
  std::vector<char> buffer_;
};

}  // namespace harpe::test
