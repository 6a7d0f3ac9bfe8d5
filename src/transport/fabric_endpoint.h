#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <memory>
#include <vector>

#include "transport/fabric_provider.h"

namespace harpe::transport {

// libfabric's objects, closed in the right order. Only included by fabric_*.cpp.
struct CloseFid {
  template <class Object>
  void operator()(Object* object) const {
    ::fi_close(&object->fid);
  }
};
template <class Object>
using Fid = std::unique_ptr<Object, CloseFid>;

struct FreeInfo {
  void operator()(fi_info* info) const { ::fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

[[nodiscard]] Diag refuse_fabric(const std::string& provider, const std::string& call,
                                 std::int64_t status);

// The provider's best offer, tried in this order: order and fence, order, fence, neither.
[[nodiscard]] Checked<Info> discover(const FabricOptions& options);
[[nodiscard]] Guarantees guarantees_of(const fi_info& info);

// An unconnected endpoint that can reach all peers, and the objects that it depends on.
struct FabricEndpoint {
  Info info;
  Fid<fid_fabric> fabric;
  Fid<fid_domain> domain;
  Fid<fid_av> addresses;
  Fid<fid_cq> completions;
  Fid<fid_ep> endpoint;
};
[[nodiscard]] Checked<FabricEndpoint> open_fabric(const FabricOptions& options);

// Registered memory, with what local and remote operations need to address it.
struct FabricMemory {
  Fid<fid_mr> registration;
  std::uint64_t base = 0;  // added to the offsets of peers
  std::uint64_t key = 0;
};
[[nodiscard]] Checked<FabricMemory> register_memory(const FabricEndpoint& endpoint,
                                                    std::span<std::byte> bytes, bool is_remote);

}  // namespace harpe::transport
