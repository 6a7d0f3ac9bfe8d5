#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/provider.h"

namespace harpe::transport {

// Connects ranks of several hosts through libfabric.
struct FabricOptions {
  std::string provider = "tcp;ofi_rxm";
  std::string interface = "";  // its address is used; "": libfabric chooses
  bool ask_order = true;       // requests order of writes; else treats the network as unordered
  bool ask_fence = true;
};

// Errors: N001, N002, N013.
[[nodiscard]] Checked<std::unique_ptr<Provider>> make_fabric_provider(const FabricOptions& options);

// What was requested of a provider and what it returned, without opening it for use.
struct FabricOffer {
  std::string provider;
  bool is_tested = false;  // our tests have run on it
  bool is_there = false;
  Guarantees asked{};
  Guarantees given{};
};
// For all providers that Harpe can use. Empty if this build has no libfabric.
[[nodiscard]] std::vector<FabricOffer> examine_fabric(const std::string& interface);

}  // namespace harpe::transport
