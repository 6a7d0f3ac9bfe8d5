#include "transport/proof.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <vector>

#include "support/check.h"

namespace harpe::transport {

Proof prove(std::span<const std::byte> key,
            std::initializer_list<std::span<const std::byte>> parts) {
  std::vector<unsigned char> text;
  for (const auto& part : parts) {
    const auto* const begin = reinterpret_cast<const unsigned char*>(part.data());
    text.insert(text.end(), begin, begin + part.size());
  }
  Proof proof{};
  unsigned int length = 0;
  const unsigned char* const done =
      ::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()), text.data(), text.size(),
             reinterpret_cast<unsigned char*>(proof.data()), &length);
  HP_CHECK(done != nullptr && length == proof.size(), "SHA-256 is in every OpenSSL");
  return proof;
}

bool is_same(const Proof& one, const Proof& other) {
  return ::CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

Nonce draw_nonce() {
  Nonce nonce{};
  const int status =
      ::RAND_bytes(reinterpret_cast<unsigned char*>(nonce.data()), static_cast<int>(nonce.size()));
  HP_CHECK(status == 1, "the system gives random bytes");
  return nonce;
}

}  // namespace harpe::transport
