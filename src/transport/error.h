#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "support/diag.h"

namespace harpe::transport {

// What the world, or another rank, did at run time. What cannot be set up is a Diag.
enum class Failure : std::uint8_t {
  Expired,    // a bounded wait
  PeerLost,   // an operation that can no longer arrive
  Malformed,  // a descriptor or message that would leave registered memory, or is none
};

struct TransportError {
  Failure kind = Failure::Expired;
  int rank = 0;          // that says so
  int peer = 0;          // about whom
  std::string what{};    // "remote completion of 3 operations"
  std::string reason{};  // Malformed: what is wrong with it
  std::chrono::milliseconds elapsed{0};
  friend bool operator==(const TransportError&, const TransportError&) = default;
};

template <class T>
using Outcome = Result<T, TransportError>;

// N020, N021, N022.
[[nodiscard]] Diag to_diag(const TransportError& error);

}  // namespace harpe::transport
