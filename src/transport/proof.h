#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>

namespace harpe::transport {

// Proofs that somebody knows a key: HMAC with SHA-256, of OpenSSL.
using Proof = std::array<std::byte, 32>;
using Nonce = std::array<std::byte, 32>;

[[nodiscard]] Proof prove(std::span<const std::byte> key,
                          std::initializer_list<std::span<const std::byte>> parts);
// Takes as long whether they differ early or late.
[[nodiscard]] bool is_same(const Proof& one, const Proof& other);
// Never drawn before.
[[nodiscard]] Nonce draw_nonce();

}  // namespace harpe::transport
