#pragma once

#include <functional>
#include <memory>
#include <string>

#include "transport/proxy.h"
#include "transport/rendezvous.h"

namespace harpe::transport::test {

using MakeProvider = std::function<Checked<std::unique_ptr<Provider>>()>;

// One rank of a test: its memory, its end, its proxy.
struct RankEnd {
  int rank = 0;
  std::vector<std::vector<std::byte>> memory;
  std::unique_ptr<Rendezvous> rendezvous;
  std::unique_ptr<Endpoint> endpoint;
  std::unique_ptr<Proxy> proxy;

  // Nobody goes on, or closes its end, before all are here.
  void meet() const;
};

// A name where nobody else meets.
[[nodiscard]] std::string new_address();

// Each rank in a thread of its own, with regions of these sizes; all end together.
void in_every_rank(const EndpointOptions& options, const std::vector<std::size_t>& sizes,
                   const MakeProvider& make, const std::function<void(RankEnd&)>& run);

}  // namespace harpe::transport::test
