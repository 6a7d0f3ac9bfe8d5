#include "exec/cuda/signals/peers.h"

#include <algorithm>
#include <utility>

#include "exec/cuda/runtime/current_device.h"
#include "support/round_up.h"

namespace harpe::cuda {
namespace {

DeviceId id_of(const Device& device) { return device.facts().id; }

Checked<Ok> make_all_peers(const std::vector<Device>& devices) {
  std::map<DeviceId, const Device*> gpus;
  for (const Device& device : devices) gpus.emplace(device.facts().id, &device);
  for (const auto& [id, one] : gpus) {
    for (const auto& [other_id, other] : gpus) {
      if (id != other_id) HP_REQUIRE_OK(one->reach(*other));
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

Checked<Peers> Peers::open(const PeersRequest& request) {
  HP_REQUIRE_OK(make_all_peers(request.devices));
  const std::int64_t of_a_rank = request.arena_bytes + SignalAddresses::bytes_for(request.flags);
  for (const Device& device : request.devices) {
    const auto sharing = std::ranges::count(request.devices, device.facts().id, id_of);
    HP_REQUIRE_OK(check_memory(device, of_a_rank * sharing));
  }
  Peers peers;
  peers.views_.resize(request.devices.size());
  for (int rank = 0; rank < peers.ranks(); ++rank) {
    const Device& device = request.devices[static_cast<std::size_t>(rank)];
    HP_TRY(DeviceMemory arena, DeviceMemory::allocate(device, request.arena_bytes));
    HP_TRY(SignalPage page, SignalPage::create(device, {.flags = request.flags}));
    peers.add_own(rank, {.device = device,
                         .arena = std::make_shared<const DeviceMemory>(std::move(arena)),
                         .page = std::move(page)});
  }
  return peers;
}

Checked<Peers> Peers::join(const OwnRankRequest& request, transport::Exchange& exchange) {
  const Checked<Ok> fits =
      check_memory(request.device, round_up(request.arena_bytes, kSharedGranule) +
                                       shared_page_bytes(request.flags));
  HP_REQUIRE_OK(transport::agree(exchange, fits.ok() ? std::nullopt : std::optional(fits.error())));
  HP_TRY(const std::shared_ptr<Arena> arena,
         Arena::make(request.device, request.arena_bytes, exchange));
  return over(request.device, arena, request.flags, 0, exchange);
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
