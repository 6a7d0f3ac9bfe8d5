#pragma once

#include <string>

namespace harpe::transport {

// libfabric is opened when it is first needed, not linked: what it loads (drivers of networks that
// are not there) waits a fifth of a second and takes over signals as soon as it is in a process.
// The functions of <rdma/fabric.h> that are no tables of an object are forwarded
// (fabric_library.cpp); none but the last of these may be called where there is no library.
[[nodiscard]] bool is_fabric_there();
// Why it is not.
[[nodiscard]] std::string why_no_fabric();

}  // namespace harpe::transport
