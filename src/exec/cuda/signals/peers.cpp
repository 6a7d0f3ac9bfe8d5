#include "exec/cuda/signals/peers.h"

#include <algorithm>
#include <utility>

#include "exec/cuda/runtime/current_device.h"
#include "support/round_up.h"

namespace harpe::cuda {
namespace {

// Each GPU once, in the order of the first rank that uses it.
Checked<std::vector<Device>> open_devices(const std::shared_ptr<const DriverApi>& driver,
                                          const std::vector<DeviceId>& gpus) {
  std::vector<Device> devices;
  for (const DeviceId gpu : gpus) {
    const bool is_open = std::ranges::any_of(
        devices, [&](const Device& device) { return device.facts().id == gpu; });
    if (is_open) continue;
    HP_TRY(Device device, Device::open(driver, gpu));
    devices.push_back(std::move(device));
  }
  return devices;
}

Checked<Ok> make_all_peers(const std::vector<Device>& devices) {
  for (const Device& one : devices) {
    for (const Device& other : devices) {
      if (one.facts().id != other.facts().id) HP_REQUIRE_OK(one.reach(other));
    }
  }
  return Ok{};
}

// Bytes of a page that other processes map.
std::int64_t shared_page_bytes(std::int32_t flags, std::int64_t inbox_bytes = 0) {
  return round_up(SignalAddresses::bytes_for(flags, inbox_bytes), kSharedGranule);
}

}  // namespace

const Peers::View& Peers::view(int rank) const {
  HP_CHECK(rank >= 0 && rank < ranks(), "there is no such rank");
  return views_[static_cast<std::size_t>(rank)];
}

const Peers::Own& Peers::own(int rank) const {
  const auto found = own_.find(rank);
  HP_CHECK(found != own_.end(), "the rank is in another process");
  return found->second;
}

SignalPage& Peers::page(int rank) {
  const auto found = own_.find(rank);
  HP_CHECK(found != own_.end(), "the rank is in another process");
  return found->second.page;
}

void Peers::add_own(int rank, Own own) {
  View& view = views_[static_cast<std::size_t>(rank)];
  view = {.arena = own.arena->address(), .signals = own.page.addresses()};
  own_.emplace(rank, std::move(own));
}

Checked<Peers> Peers::open(const std::shared_ptr<const DriverApi>& driver,
                           const PeersRequest& request) {
  HP_TRY(const std::vector<Device> devices, open_devices(driver, request.gpus));
  HP_REQUIRE_OK(make_all_peers(devices));
  const std::int64_t of_a_rank = request.arena_bytes + SignalAddresses::bytes_for(request.flags);
  for (const Device& device : devices) {
    const auto sharing = std::ranges::count(request.gpus, device.facts().id);
    HP_REQUIRE_OK(check_memory(device, of_a_rank * sharing));
  }
  Peers peers;
  peers.views_.resize(request.gpus.size());
  for (int rank = 0; rank < peers.ranks(); ++rank) {
    const DeviceId gpu = request.gpus[static_cast<std::size_t>(rank)];
    const auto device =
        std::ranges::find_if(devices, [&](const Device& each) { return each.facts().id == gpu; });
    HP_TRY(DeviceMemory arena, DeviceMemory::allocate(*device, request.arena_bytes));
    HP_TRY(SignalPage page, SignalPage::create(*device, {.flags = request.flags}));
    peers.add_own(rank, {.device = *device,
                         .arena = std::make_shared<const DeviceMemory>(std::move(arena)),
                         .page = std::move(page)});
  }
  return peers;
}

Checked<Peers> Peers::join(const std::shared_ptr<const DriverApi>& driver,
                           const OwnRankRequest& request, transport::Exchange& exchange) {
  const auto prepare = [&]() -> Checked<Device> {
    HP_TRY(Device device, Device::open(driver, request.gpu));
    HP_REQUIRE_OK(check_memory(
        device, round_up(request.arena_bytes, kSharedGranule) + shared_page_bytes(request.flags)));
    return device;
  };
  const Checked<Device> device = prepare();
  HP_REQUIRE_OK(
      transport::agree(exchange, device.ok() ? std::nullopt : std::optional(device.error())));
  HP_TRY(const std::shared_ptr<Arena> arena, Arena::make(*device, request.arena_bytes, exchange));
  return over(*device, arena, request.flags, 0, exchange);
}

Checked<Peers> Peers::over(const Device& device, const std::shared_ptr<Arena>& arena,
                           std::int32_t flags, std::int64_t inbox_bytes,
                           transport::Exchange& exchange) {
  Checked<SignalPage> page =
      SignalPage::create(device, {.flags = flags,
                                  .inbox_bytes = inbox_bytes,
                                  .least_bytes = shared_page_bytes(flags, inbox_bytes)});
  HP_REQUIRE_OK(transport::agree(exchange, page.ok() ? std::nullopt : std::optional(page.error())));
  HP_TRY(PeerMemory pages, PeerMemory::share(device, page->memory(), exchange));
  Peers peers;
  for (int rank = 0; rank < pages.ranks(); ++rank) {
    peers.views_.push_back(
        {.arena = arena->of_all[rank], .signals = {.base = pages[rank], .flags = flags}});
  }
  peers.add_own(exchange.rank(), {.device = device,
                                  .arena = std::shared_ptr<const DeviceMemory>(arena, &arena->own),
                                  .page = std::move(page).value()});
  peers.arena_ = arena;
  peers.pages_ = std::move(pages);
  return peers;
}

Checked<Ok> Peers::leave(transport::Exchange& exchange) {
  const auto done = exchange.all_gather({});
  if (!done.ok()) return done.error();
  arena_->of_all.close();
  pages_->close();
  const auto left = exchange.all_gather({});
  if (!left.ok()) return left.error();
  return Ok{};
}

}  // namespace harpe::cuda
