#include "transport/sealed.h"

namespace harpe::transport {
namespace {

constexpr std::uint64_t kMostSealedBytes = 1 << 20;

// What a proof covers besides the bytes, so that a message can pass neither for one of the other
// side nor for an earlier or later one.
struct Envelope {
  std::uint64_t from_host = 0;
  std::uint64_t number = 0;
  std::uint64_t size = 0;
};

template <class Value>
std::span<const std::byte> bytes_of(const Value& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

Result<Ok, SocketError> Sealed::send(std::span<const std::byte> bytes, Deadline deadline) {
  HP_CHECK(bytes.size() <= kMostSealedBytes, "what ranks exchange here is small");
  const Envelope envelope{.from_host = is_host_ ? 1U : 0U, .number = sent_++, .size = bytes.size()};
  const Proof proof = prove(key_, {bytes_of(envelope), bytes});
  // In one send: if a side closes right after sending in parts, the last part may be lost.
  const auto size = bytes_of(envelope.size);
  Blob message(size.begin(), size.end());
  message.insert(message.end(), bytes.begin(), bytes.end());
  message.insert(message.end(), proof.begin(), proof.end());
  return socket_.send(message, deadline);
}

Result<Blob, SocketError> Sealed::receive(Deadline deadline) {
  Envelope envelope{.from_host = is_host_ ? 0U : 1U, .number = received_++};
  HP_REQUIRE_OK(socket_.receive(std::as_writable_bytes(std::span(&envelope.size, 1)), deadline));
  if (envelope.size > kMostSealedBytes) {
    return SocketError{"it sends " + std::to_string(envelope.size) + " bytes"};
  }
  Blob bytes(envelope.size);
  Proof proof{};
  HP_REQUIRE_OK(socket_.receive(bytes, deadline));
  HP_REQUIRE_OK(socket_.receive(proof, deadline));
  if (!is_same(proof, prove(key_, {bytes_of(envelope), bytes}))) {
    return SocketError{"a message is not as it was sent"};
  }
  return bytes;
}

}  // namespace harpe::transport
