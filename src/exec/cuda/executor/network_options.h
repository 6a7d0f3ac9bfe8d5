#pragma once

#include <string>

namespace harpe::cuda {

// What ranks of different nodes reach each other by.
struct NetworkOptions {
  std::string provider = "shared";  // or one of libfabric's: "tcp;ofi_rxm"
  std::string interface = "";       // whose address is used; "" for the choice of libfabric
};

}  // namespace harpe::cuda
