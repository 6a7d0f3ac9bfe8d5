#include "transport/fabric_library.h"

#ifdef HARPE_WITH_FABRIC

#include <dlfcn.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

namespace {

// Opened once and never closed: its threads may still run when the process ends.
struct FabricLibrary {
  decltype(&::fi_getinfo) getinfo = nullptr;
  decltype(&::fi_freeinfo) freeinfo = nullptr;
  decltype(&::fi_dupinfo) dupinfo = nullptr;
  decltype(&::fi_fabric) fabric = nullptr;
  decltype(&::fi_strerror) strerror = nullptr;
  std::string reason;  // why it is missing

  FabricLibrary() {
    void* const file = ::dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
    if (file == nullptr) {
      const char* const said = ::dlerror();
      reason = said != nullptr ? said : "libfabric.so.1 does not open";
      return;
    }
    find(file, "fi_getinfo", getinfo);
    find(file, "fi_freeinfo", freeinfo);
    find(file, "fi_dupinfo", dupinfo);
    find(file, "fi_fabric", fabric);
    find(file, "fi_strerror", strerror);
  }

 private:
  template <class Function>
  void find(void* file, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(file, name));
    if (function == nullptr && reason.empty()) reason = std::string("it lacks ") + name;
  }
};

const FabricLibrary& library() {
  static const FabricLibrary opened;
  return opened;
}

}  // namespace

namespace harpe::transport {

bool is_fabric_there() { return library().reason.empty(); }
std::string why_no_fabric() { return library().reason; }

}  // namespace harpe::transport

extern "C" {

int fi_getinfo(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
               const struct fi_info* hints, struct fi_info** info) {
  return library().getinfo(version, node, service, flags, hints, info);
}

void fi_freeinfo(struct fi_info* info) { library().freeinfo(info); }

struct fi_info* fi_dupinfo(const struct fi_info* info) { return library().dupinfo(info); }

int fi_fabric(struct fi_fabric_attr* attributes, struct fid_fabric** fabric, void* context) {
  return library().fabric(attributes, fabric, context);
}

const char* fi_strerror(int number) { return library().strerror(number); }
}

#else

namespace harpe::transport {

bool is_fabric_there() { return false; }
std::string why_no_fabric() { return "this build has no libfabric"; }

}  // namespace harpe::transport

#endif
