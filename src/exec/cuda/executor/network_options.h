#pragma once

#include <string>

namespace harpe::cuda {

// How ranks of different nodes reach each other.
struct NetworkOptions {
  std::string provider = "shared";  // or one of libfabric's: "tcp;ofi_rxm"
  std::string interface = "";       // its address is used; "": libfabric chooses
};

}  // namespace harpe::cuda
