#include "transport/make_provider.h"

#include "transport/fabric_provider.h"
#include "transport/shared_provider.h"

namespace harpe::transport {

Checked<std::unique_ptr<Provider>> make_provider(const std::string& name,
                                                 const std::string& interface) {
  if (name == "shared") return make_shared_provider();
  return make_fabric_provider({.provider = name, .interface = interface});
}

}  // namespace harpe::transport
