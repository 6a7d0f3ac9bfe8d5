#include "transport/interface.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <optional>
#include <set>

namespace harpe::transport {
namespace {

std::optional<std::string> numeric(const sockaddr* address) {
  const socklen_t length =
      address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::array<char, NI_MAXHOST> host{};
  if (::getnameinfo(address, length, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    return std::nullopt;
  }
  return host.data();
}

}  // namespace

Checked<std::string> address_on(const std::string& interface) {
  ifaddrs* first = nullptr;
  const bool is_listed = ::getifaddrs(&first) == 0;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> list(is_listed ? first : nullptr,
                                                          [](ifaddrs* all) { ::freeifaddrs(all); });
  std::set<std::string> others;
  // Prefers IPv4, which every provider supports.
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* each = list.get(); each != nullptr; each = each->ifa_next) {
      if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != family) continue;
      others.insert(each->ifa_name);
      if (interface != each->ifa_name) continue;
      if (auto address = numeric(each->ifa_addr)) return *std::move(address);
    }
  }
  std::string names;
  for (const std::string& name : others) names += (names.empty() ? "`" : ", `") + name + "`";
  return make_diag(DiagCode::N013,
                   {{"interface", interface}, {"others", names.empty() ? "none" : names}});
}

}  // namespace harpe::transport
