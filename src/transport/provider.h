#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transport/descriptor.h"
#include "transport/error.h"
#include "transport/ordering.h"

namespace harpe::transport {

using Blob = std::vector<std::byte>;

// Memory that other ranks may write; nothing else is accessible. `file` is what shared memory maps
// in other processes (shared_memory.h); networks need none.
struct Region {
  std::span<std::byte> bytes{};
  int file = -1;
};

// What other ranks need to reach one rank: sizes, which commands are checked against, and the
// provider's address.
struct Contact {
  std::vector<std::int64_t> sizes;  // of its regions
  Blob address;
};

// Identifies an operation until it completes; the provider only returns it.
using Token = std::uint64_t;

struct Write {
  int peer = 0;
  Place source{};
  Place destination{};
  std::int64_t bytes = 0;
  bool fence = false;                       // only if the provider guarantees it
  std::optional<SignalUpdate> immediate{};  // travels with the data
  Token token = 0;
};

struct SignalWrite {
  int peer = 0;
  SignalUpdate update{};
  bool fence = false;
  Token token = 0;
};

enum class Posted : std::uint8_t { Yes, Later };  // Later: full; turn and try again

// One way to other ranks' memory, for one rank; the open set of this module. After `connect` only
// one thread, the proxy, calls it.
class Provider {
 public:
  Provider() = default;
  Provider(const Provider&) = delete;
  Provider& operator=(const Provider&) = delete;
  virtual ~Provider() = default;

  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual const Guarantees& given() const = 0;

  // Makes the regions accessible. Called once. Errors: N002.
  [[nodiscard]] virtual Checked<Contact> expose(std::span<const Region> regions) = 0;
  // All ranks' contacts in their order, the own one included. Called once. Errors: N002.
  [[nodiscard]] virtual Checked<Ok> connect(std::span<const Contact> contacts) = 0;

  // Whether the update can travel as data of a put, or be added at all.
  [[nodiscard]] virtual bool carries(const SignalUpdate& update) const = 0;

  // Requires: within the regions of both sides (descriptor.h checks that).
  [[nodiscard]] virtual Outcome<Posted> post(const Write& write) = 0;
  [[nodiscard]] virtual Outcome<Posted> post(const SignalWrite& signal) = 0;
  // Makes progress, here and for ranks that write to this one, and appends the tokens of completed
  // operations, which are placed on the other rank. Returns whether anything happened.
  [[nodiscard]] virtual Outcome<bool> turn(std::vector<Token>& completed) = 0;
};

}  // namespace harpe::transport
