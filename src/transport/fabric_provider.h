#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/provider.h"

namespace harpe::transport {

// Ranks of several hosts, through libfabric.
struct FabricOptions {
  std::string provider = "tcp;ofi_rxm";
  std::string interface = "";  // its address is the one that is used; "" for libfabric's choice
  bool ask_order = true;       // of writes; else what an unordered network needs is done
  bool ask_fence = true;
};

// Errors: N001, N002, N013.
[[nodiscard]] Checked<std::unique_ptr<Provider>> make_fabric_provider(const FabricOptions& options);

// What a provider was asked for and what it returned, without opening it for use.
struct FabricOffer {
  std::string provider;
  bool is_tested = false;  // these tests of ours have run on it
  bool is_there = false;
  Guarantees asked{};
  Guarantees given{};
};
// Of all that Harpe knows to use. Empty where this build has no libfabric.
[[nodiscard]] std::vector<FabricOffer> examine_fabric(const std::string& interface);

}  // namespace harpe::transport
