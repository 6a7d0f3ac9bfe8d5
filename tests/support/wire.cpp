#include "tests/support/wire.h"

#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>

namespace harpe::test {

constexpr std::size_t kLargestPacket = 65'536;
// Offset of the last byte of the destination address in an IPv4 packet. Host h is 10.77.0.h+1.
constexpr std::size_t kDestinationAt = 19;
constexpr int kVersion4 = 4;

Wire::Wire(std::vector<int> devices, const WireOptions& options)
    : devices_(std::move(devices)),
      options_(options),
      under_way_(devices_.size()),
      free_at_(devices_.size()),
      is_cut_(std::make_unique<std::atomic<bool>[]>(devices_.size())),
      slowness_(std::make_unique<std::atomic<int>[]>(devices_.size())),
      buffer_(kLargestPacket) {
  for (std::size_t host = 0; host < devices_.size(); ++host) slowness_[host] = 1;
}

Wire::~Wire() {
  for (const int device : devices_) ::close(device);
}

void Wire::run(const std::atomic<bool>& stop) {
  ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  std::vector<pollfd> waited;
  for (const int device : devices_)
    waited.push_back({.fd = device, .events = POLLIN, .revents = 0});
  while (!stop.load()) {
    const auto rest = until_next(Clock::now());
    const timespec limit{.tv_sec = rest.count() / 1'000'000'000,
                         .tv_nsec = rest.count() % 1'000'000'000};
    if (::ppoll(waited.data(), waited.size(), &limit, nullptr) > 0) {
      for (std::size_t from = 0; from < waited.size(); ++from) {
        if ((waited[from].revents & POLLIN) != 0) accept(from);
      }
    }
    deliver(Clock::now());
  }
}

void Wire::accept(std::size_t from) {
  for (int count = 0; count < 64; ++count) {
    const ssize_t size = ::read(devices_[from], buffer_.data(), buffer_.size());
    if (size <= 0) return;
    const auto bytes = static_cast<std::size_t>(size);
    if (bytes <= kDestinationAt || (buffer_[0] >> 4 & 0xf) != kVersion4) continue;
    const auto to =
        static_cast<std::size_t>(static_cast<unsigned char>(buffer_[kDestinationAt])) - 1;
    if (to >= devices_.size() || is_cut_[from].load() || is_cut_[to].load()) continue;
    const auto now = Clock::now();
    const int times = slowness_[from].load();
    auto leaves = std::max(now, free_at_[from]);
    if (options_.bytes_per_second > 0) {
      leaves += std::chrono::nanoseconds(static_cast<std::int64_t>(
          1e9 * times * static_cast<double>(bytes) / options_.bytes_per_second));
    }
    free_at_[from] = leaves;
    under_way_[from].push_back({leaves + times * options_.delay, to,
                                std::vector<char>(buffer_.data(), buffer_.data() + bytes)});
  }
}

void Wire::deliver(Clock::time_point now) {
  for (std::deque<Packet>& queue : under_way_) {
    while (!queue.empty() && queue.front().due <= now) {
      const Packet& packet = queue.front();
      // A full device drops the packet, as a switch would.
      (void)!::write(devices_[packet.to], packet.bytes.data(), packet.bytes.size());
      queue.pop_front();
    }
  }
}

std::chrono::nanoseconds Wire::until_next(Clock::time_point now) const {
  std::chrono::nanoseconds rest = std::chrono::milliseconds(20);  // how often to check `stop`
  for (const std::deque<Packet>& queue : under_way_) {
    if (!queue.empty()) rest = std::min<std::chrono::nanoseconds>(rest, queue.front().due - now);
  }
  return std::max(rest, std::chrono::nanoseconds(0));
}

}  // namespace harpe::test
