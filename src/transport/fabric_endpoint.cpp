#ifdef HARPE_WITH_FABRIC

#include "transport/fabric_endpoint.h"

#include <cstring>

#include "transport/fabric_library.h"
#include "transport/interface.h"
#include "transport/proof.h"

namespace harpe::transport {
namespace {

constexpr std::uint32_t kApi = FI_VERSION(1, 17);
// A provider may keep the order of writes only up to a size. No put is as large as this.
constexpr std::size_t kAnySize = std::size_t{1} << 40;

Info make_hints(const FabricOptions& options, bool order, bool fence) {
  Info hints(::fi_allocinfo());
  hints->caps = FI_RMA | FI_WRITE | FI_REMOTE_WRITE | (fence ? FI_FENCE : 0);
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode =
      FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  hints->domain_attr->threading = FI_THREAD_SAFE;
  // Without it a completion only means that the data has left.
  hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
  if (order) {
    hints->tx_attr->msg_order = FI_ORDER_RMA_WAW;
    hints->rx_attr->msg_order = FI_ORDER_RMA_WAW;
  }
  hints->fabric_attr->prov_name = ::strdup(options.provider.c_str());
  return hints;
}

bool is_in_order(const fi_info& info) {
  constexpr std::uint64_t kEither = FI_ORDER_RMA_WAW | FI_ORDER_WAW;
  return (info.tx_attr->msg_order & kEither) != 0 && (info.rx_attr->msg_order & kEither) != 0 &&
         info.ep_attr->max_order_waw_size >= kAnySize;
}

}  // namespace

Diag refuse_fabric(const std::string& provider, const std::string& call, std::int64_t status) {
  return make_diag(DiagCode::N002, {{"provider", provider},
                                    {"call", call},
                                    {"reason", ::fi_strerror(static_cast<int>(-status))}});
}

Checked<Info> discover(const FabricOptions& options) {
  if (!is_fabric_there()) {
    return make_diag(
        DiagCode::N002,
        {{"provider", options.provider}, {"call", "dlopen"}, {"reason", why_no_fabric()}});
  }
  std::string address;
  if (!options.interface.empty()) {
    HP_TRY(address, address_on(options.interface));
  }
  int status = 0;
  for (const auto& [order, fence] :
       {std::pair(true, true), {true, false}, {false, true}, {false, false}}) {
    if ((order && !options.ask_order) || (fence && !options.ask_fence)) continue;
    const Info hints = make_hints(options, order, fence);
    fi_info* found = nullptr;
    status = ::fi_getinfo(kApi, address.empty() ? nullptr : address.c_str(), nullptr,
                          address.empty() ? 0 : FI_SOURCE, hints.get(), &found);
    if (status != 0) continue;
    Info info(found);
    // A provider may return what was not requested, and then not keep it.
    if (!order) info->tx_attr->msg_order &= ~std::uint64_t{FI_ORDER_RMA_WAW | FI_ORDER_WAW};
    if (!fence) info->caps &= ~std::uint64_t{FI_FENCE};
    return info;
  }
  return refuse_fabric(options.provider, "fi_getinfo", status);
}

Guarantees guarantees_of(const fi_info& info) {
  const auto data = static_cast<int>(info.domain_attr->cq_data_size);
  return {.in_order = is_in_order(info),
          .fence = (info.caps & FI_FENCE) != 0,
          .immediate = data >= 4,
          .immediate_bytes = data >= 4 ? data : 0,
          .remote_completion = (info.tx_attr->op_flags & FI_DELIVERY_COMPLETE) != 0,
          .counts = data >= 4,
          .target_progress = info.domain_attr->data_progress == FI_PROGRESS_MANUAL};
}

Checked<FabricEndpoint> open_fabric(const FabricOptions& options) {
  FabricEndpoint all;
  HP_TRY(all.info, discover(options));
  fi_info* const info = all.info.get();
  const auto failed = [&](const char* call, int status) {
    return refuse_fabric(options.provider, call, status);
  };
  fid_fabric* fabric = nullptr;
  int status = ::fi_fabric(info->fabric_attr, &fabric, nullptr);
  if (status != 0) return failed("fi_fabric", status);
  all.fabric.reset(fabric);
  fid_domain* domain = nullptr;
  status = ::fi_domain(fabric, info, &domain, nullptr);
  if (status != 0) return failed("fi_domain", status);
  all.domain.reset(domain);
  fi_av_attr table{};
  table.type = FI_AV_TABLE;
  fid_av* addresses = nullptr;
  status = ::fi_av_open(domain, &table, &addresses, nullptr);
  if (status != 0) return failed("fi_av_open", status);
  all.addresses.reset(addresses);
  fi_cq_attr queue{};
  queue.format = FI_CQ_FORMAT_DATA;
  queue.size = 8192;
  fid_cq* completions = nullptr;
  status = ::fi_cq_open(domain, &queue, &completions, nullptr);
  if (status != 0) return failed("fi_cq_open", status);
  all.completions.reset(completions);
  fid_ep* endpoint = nullptr;
  status = ::fi_endpoint(domain, info, &endpoint, nullptr);
  if (status != 0) return failed("fi_endpoint", status);
  all.endpoint.reset(endpoint);
  status = ::fi_ep_bind(endpoint, &addresses->fid, 0);
  if (status != 0) return failed("fi_ep_bind", status);
  status = ::fi_ep_bind(endpoint, &completions->fid, FI_TRANSMIT | FI_RECV);
  if (status != 0) return failed("fi_ep_bind", status);
  status = ::fi_enable(endpoint);
  if (status != 0) return failed("fi_enable", status);
  return all;
}

Checked<FabricMemory> register_memory(const FabricEndpoint& endpoint, std::span<std::byte> bytes,
                                      bool is_remote) {
  const fi_domain_attr& domain = *endpoint.info->domain_attr;
  const std::string name = endpoint.info->fabric_attr->prov_name;
  // If the provider does not choose the key, it is random, so that it cannot be guessed.
  std::uint64_t key = 0;
  const Nonce drawn = draw_nonce();
  std::memcpy(&key, drawn.data(), sizeof(key));
  if (domain.mr_key_size < sizeof(key)) key &= (std::uint64_t{1} << (8 * domain.mr_key_size)) - 1;
  fid_mr* registration = nullptr;
  int status =
      ::fi_mr_reg(endpoint.domain.get(), bytes.data(), bytes.size(),
                  is_remote ? FI_REMOTE_WRITE : FI_WRITE, 0, key, 0, &registration, nullptr);
  if (status != 0) return refuse_fabric(name, "fi_mr_reg", status);
  FabricMemory memory{.registration = Fid<fid_mr>(registration)};
  if ((domain.mr_mode & FI_MR_ENDPOINT) != 0) {
    status = ::fi_mr_bind(registration, &endpoint.endpoint->fid, 0);
    if (status == 0) status = ::fi_mr_enable(registration);
    if (status != 0) return refuse_fabric(name, "fi_mr_enable", status);
  }
  memory.key = ::fi_mr_key(registration);
  if (memory.key == FI_KEY_NOTAVAIL) return refuse_fabric(name, "fi_mr_key", -FI_ENOKEY);
  const bool is_virtual = (domain.mr_mode & FI_MR_VIRT_ADDR) != 0;
  memory.base = is_virtual ? reinterpret_cast<std::uint64_t>(bytes.data()) : 0;
  return memory;
}

}  // namespace harpe::transport

#endif
