#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>

namespace harpe::transport {

// Proofs of knowing a key: HMAC with SHA-256, from OpenSSL.
using Proof = std::array<std::byte, 32>;
using Nonce = std::array<std::byte, 32>;

[[nodiscard]] Proof prove(std::span<const std::byte> key,
                          std::initializer_list<std::span<const std::byte>> parts);
// Constant time: does not depend on where they differ.
[[nodiscard]] bool is_same(const Proof& one, const Proof& other);
// A random number, different on each call.
[[nodiscard]] Nonce draw_nonce();

}  // namespace harpe::transport
