#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "transport/provider.h"

namespace harpe::transport {

// How ranks exchange a few bytes before they map each other's memory, and agree to proceed.
class Exchange {
 public:
  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  virtual ~Exchange() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int ranks() const = 0;
  // The bytes of every rank, in order of ranks. Collective: all ranks call it equally often, and it
  // returns once all have called. Errors: N010.
  [[nodiscard]] virtual Checked<std::vector<Blob>> all_gather(std::span<const std::byte> own) = 0;
};

// Every rank reports whether it could do its part; all proceed once all could. Until then no rank
// frees what others access. Errors: `failure`, if this rank could not; N017 another rank could not;
// N010.
[[nodiscard]] Checked<Ok> agree(Exchange& exchange, const std::optional<Diag>& failure);

// Compares the ranks' plan hashes. Errors: N015 a hash differs from rank 0's; N010.
[[nodiscard]] Checked<Ok> compare(Exchange& exchange, std::string_view hash);

// A contact as bytes. `parse_contact` is total: it returns none for invalid bytes.
[[nodiscard]] Blob print(const Contact& contact);
[[nodiscard]] std::optional<Contact> parse_contact(std::span<const std::byte> bytes);

}  // namespace harpe::transport
