#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "support/diag.h"

namespace harpe::transport {

// An error at run time, from outside or from another rank. Errors of setting up are Diags.
enum class Failure : std::uint8_t {
  Expired,    // a bounded wait expired
  PeerLost,   // an operation can no longer arrive
  Malformed,  // a descriptor or message is invalid or would leave registered memory
};

struct TransportError {
  Failure kind = Failure::Expired;
  int rank = 0;          // the rank that reports it
  int peer = 0;          // the rank that it is about
  std::string what{};    // "remote completion of 3 operations"
  std::string reason{};  // Malformed: the problem
  std::chrono::milliseconds elapsed{0};
  friend bool operator==(const TransportError&, const TransportError&) = default;
};

template <class T>
using Outcome = Result<T, TransportError>;

// N020, N021, N022.
[[nodiscard]] Diag to_diag(const TransportError& error);

}  // namespace harpe::transport
