#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "transport/provider.h"

namespace harpe::transport {

// How ranks exchange a few bytes before they reach each other's memory, and agree to go on.
class Exchange {
 public:
  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  virtual ~Exchange() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int ranks() const = 0;
  // What every rank gave, in their order. Called by all of them, equally often; returns once all
  // have called. Errors: N010.
  [[nodiscard]] virtual Checked<std::vector<Blob>> all_gather(std::span<const std::byte> own) = 0;
};

// Every rank says whether it could do what all of them do, and goes on once all could. Until then
// nobody lets go of what others reach for. Errors: `failure`, where this rank could not; N017
// another could not; N010.
[[nodiscard]] Checked<Ok> agree(Exchange& exchange, const std::optional<Diag>& failure);

// Every rank gives its plan's hash. Errors: N015 one has another than rank 0; N010.
[[nodiscard]] Checked<Ok> compare(Exchange& exchange, std::string_view hash);

// A contact as bytes. `parse_contact` is total: what is none gives none.
[[nodiscard]] Blob print(const Contact& contact);
[[nodiscard]] std::optional<Contact> parse_contact(std::span<const std::byte> bytes);

}  // namespace harpe::transport
