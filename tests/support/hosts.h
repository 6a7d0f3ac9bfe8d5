#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/wire.h"

namespace harpe::test {

// Hosts on one machine: one process per host in its own network namespace, with a device `tun0` of
// address 10.77.0.HOST+1, joined by a wire. All of it disappears with the processes.
struct HostOptions {
  int count = 2;
  WireOptions wire;
  std::chrono::seconds limit{60};  // then the remaining hosts are killed
};

constexpr const char* kHostInterface = "tun0";
[[nodiscard]] std::string host_address(int host, int port);

struct HostRun {
  std::vector<int> statuses;        // exit statuses by host; 128 + a signal's number
  std::optional<std::string> skip;  // why this machine cannot run test hosts
};
// Runs `main` on each host. Meanwhile `meddle` runs in this process, for example to cut cables.
// Requires: the calling process has one thread.
[[nodiscard]] HostRun run_on_hosts(const HostOptions& options, const std::function<int(int)>& main,
                                   const std::function<void(Wire&)>& meddle = {});

}  // namespace harpe::test
