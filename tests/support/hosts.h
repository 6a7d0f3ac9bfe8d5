#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/wire.h"

namespace harpe::test {

// Hosts on one machine: network namespaces, each a process with a device `tun0` of address
// 10.77.0.HOST+1, and a wire between them. All is gone with the processes.
struct HostOptions {
  int count = 2;
  WireOptions wire;
  std::chrono::seconds limit{60};  // then whoever is left is ended
};

constexpr const char* kHostInterface = "tun0";
[[nodiscard]] std::string host_address(int host, int port);

struct HostRun {
  std::vector<int> statuses;        // exit statuses by host; 128 + a signal's number
  std::optional<std::string> skip;  // why there are no test hosts here
};
// Runs `main` on each host. `meddle` runs here meanwhile, to cut cables.
// Requires: called by a process with one thread.
[[nodiscard]] HostRun run_on_hosts(const HostOptions& options, const std::function<int(int)>& main,
                                   const std::function<void(Wire&)>& meddle = {});

}  // namespace harpe::test
