#pragma once

#include <functional>
#include <memory>
#include <string>

#include "transport/proxy.h"
#include "transport/rendezvous.h"
#include "transport/shared_memory.h"

namespace harpe::transport::test {

using MakeProvider = std::function<Checked<std::unique_ptr<Provider>>()>;

// One rank of a test: its memory, its endpoint and its rendezvous with the other ranks.
struct RankEnd {
  int rank = 0;
  std::vector<SharedMemory> memory;
  std::unique_ptr<Rendezvous> rendezvous;
  std::unique_ptr<Endpoint> endpoint;
  Proxy* proxy = nullptr;  // that drives the endpoint, and perhaps others

  // The contributions of all ranks; waits for all. If a rank has exited, this process exits too.
  [[nodiscard]] std::vector<Blob> gather(std::span<const std::byte> own) const;
  void meet() const { (void)gather({}); }

  template <class Value>
  Value& at(std::size_t region, std::int64_t offset) {
    return *reinterpret_cast<Value*>(memory[region].bytes().data() + offset);
  }
};

struct GroupOptions {
  std::vector<int> ranks;            // each a thread of this process
  EndpointOptions endpoint{};        // `rank` is filled in
  Meeting meeting{};                 // likewise; so is `ranks`
  std::vector<std::size_t> sizes{};  // of the regions, in bytes
  MakeProvider make{};
  bool one_proxy = true;  // shared by all ranks of the group
};

// An address of this machine that no other rendezvous uses.
[[nodiscard]] std::string new_address();

// Runs each rank in a thread; returns when the ranks of all groups are done. Returns false and
// prints the reason to standard error if a rank cannot be set up.
bool run_group(const GroupOptions& options, const std::function<void(RankEnd&)>& run);

}  // namespace harpe::transport::test
