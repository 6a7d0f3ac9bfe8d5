#pragma once

#include <string>

namespace harpe::transport {

// libfabric is opened on first use and not linked: the drivers of absent networks that it loads
// wait for a fifth of a second and install signal handlers as soon as they are in a process. The
// functions of <rdma/fabric.h> that belong to no object's table are forwarded (fabric_library.cpp).
// Without the library only the last of them may be called.
[[nodiscard]] bool is_fabric_there();
// Why it is missing.
[[nodiscard]] std::string why_no_fabric();

}  // namespace harpe::transport
