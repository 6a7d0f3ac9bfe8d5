#pragma once

#include <functional>
#include <memory>
#include <string>

#include "transport/proxy.h"
#include "transport/rendezvous.h"
#include "transport/shared_memory.h"

namespace harpe::transport::test {

using MakeProvider = std::function<Checked<std::unique_ptr<Provider>>()>;

// One rank of a test: its memory, its end, how it meets the others.
struct RankEnd {
  int rank = 0;
  std::vector<SharedMemory> memory;
  std::unique_ptr<Rendezvous> rendezvous;
  std::unique_ptr<Endpoint> endpoint;
  Proxy* proxy = nullptr;  // that turns it, and perhaps others

  // What all ranks gave. Nobody goes on before all are here; where one is gone the process ends.
  [[nodiscard]] std::vector<Blob> gather(std::span<const std::byte> own) const;
  void meet() const { (void)gather({}); }

  template <class Value>
  Value& at(std::size_t region, std::int64_t offset) {
    return *reinterpret_cast<Value*>(memory[region].bytes().data() + offset);
  }
};

struct GroupOptions {
  std::vector<int> ranks;            // that are threads of this process, each
  EndpointOptions endpoint{};        // `rank` is filled in
  Meeting meeting{};                 // likewise, and `ranks`
  std::vector<std::size_t> sizes{};  // of the regions
  MakeProvider make{};
  bool one_proxy = true;  // for all ranks of the group
};

// A name where nobody else meets, on this machine.
[[nodiscard]] std::string new_address();

// Runs each rank of the group in a thread; returns when all are done, after all of other groups.
// False where a rank could not be set up, which is said on standard error.
bool run_group(const GroupOptions& options, const std::function<void(RankEnd&)>& run);

}  // namespace harpe::transport::test
