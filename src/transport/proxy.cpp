#include "transport/proxy.h"

#include <sys/prctl.h>

#include "support/threads.h"

namespace harpe::transport {

Proxy::Proxy(std::vector<Endpoint*> endpoints)
    : thread_(start_thread([endpoints = std::move(endpoints)](const std::stop_token& stop) {
        run(stop, endpoints);
      })) {}

void Proxy::stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void Proxy::run(const std::stop_token& stop, const std::vector<Endpoint*>& endpoints) {
  // Naps are short: limits the kernel's timer slack to this many nanoseconds.
  ::prctl(PR_SET_TIMERSLACK, 1'000UL, 0UL, 0UL, 0UL);
  constexpr int kLooks = 200;
  constexpr int kYields = 2'000;
  for (int idle = 0; !stop.stop_requested();) {
    bool any = false;
    for (Endpoint* endpoint : endpoints) any = endpoint->turn() || any;
    idle = any ? 0 : idle + 1;
    if (idle < kLooks) continue;
    if (idle < kYields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
}

}  // namespace harpe::transport
