#include "transport/exchange.h"

#include <algorithm>
#include <cstring>

namespace harpe::transport {

Checked<Ok> agree(Exchange& exchange, const std::optional<Diag>& failure) {
  const std::string reason = failure ? render_message(*failure) : "";
  const auto all = exchange.all_gather(std::as_bytes(std::span(reason)));
  if (failure) return *failure;
  if (!all.ok()) return all.error();
  for (std::size_t rank = 0; rank < all->size(); ++rank) {
    const Blob& blob = (*all)[rank];
    if (blob.empty()) continue;
    const std::string other(reinterpret_cast<const char*>(blob.data()), blob.size());
    return make_diag(DiagCode::N017, {{"rank", rank}, {"reason", other}});
  }
  return Ok{};
}

Checked<Ok> compare(Exchange& exchange, std::string_view hash) {
  HP_TRY(const std::vector<Blob> all, exchange.all_gather(std::as_bytes(std::span(hash))));
  const auto other = std::ranges::find_if(all, [&](const Blob& each) { return each != all[0]; });
  if (other == all.end()) return Ok{};
  return make_diag(DiagCode::N015, {{"rank", other - all.begin()}});
}

// The number of regions, their sizes, then the address: 8 bytes each, in this machine's byte order.
Blob print(const Contact& contact) {
  std::vector<std::int64_t> numbers = {static_cast<std::int64_t>(contact.sizes.size())};
  numbers.insert(numbers.end(), contact.sizes.begin(), contact.sizes.end());
  const auto bytes = std::as_bytes(std::span(numbers));
  Blob blob(bytes.begin(), bytes.end());
  blob.insert(blob.end(), contact.address.begin(), contact.address.end());
  return blob;
}

std::optional<Contact> parse_contact(std::span<const std::byte> bytes) {
  constexpr std::size_t kStep = sizeof(std::int64_t);
  constexpr std::int64_t kMostRegions = 1 << 16;
  std::int64_t count = 0;
  if (bytes.size() < kStep) return std::nullopt;
  std::memcpy(&count, bytes.data(), kStep);
  bytes = bytes.subspan(kStep);
  if (count < 0 || count > kMostRegions || bytes.size() < static_cast<std::size_t>(count) * kStep) {
    return std::nullopt;
  }
  Contact contact;
  contact.sizes.resize(static_cast<std::size_t>(count));
  const std::size_t length = contact.sizes.size() * kStep;
  if (length != 0) std::memcpy(contact.sizes.data(), bytes.data(), length);
  if (std::ranges::any_of(contact.sizes, [](std::int64_t size) { return size < 0; })) {
    return std::nullopt;
  }
  contact.address.assign(bytes.begin() + static_cast<std::ptrdiff_t>(length), bytes.end());
  return contact;
}

}  // namespace harpe::transport
