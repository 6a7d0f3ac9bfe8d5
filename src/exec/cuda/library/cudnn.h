#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "exec/cuda/device/types.h"
#include "exec/cuda/library/missing.h"
#include "exec/cuda/library/places.h"
#include "support/result.h"

namespace harpe::library {

// Strides of operands that are not packed, in elements; the columns of a row are contiguous.
struct AttentionLayout {
  device::AttentionStrides q{};
  device::AttentionStrides k{};
  device::AttentionStrides v{};
  device::AttentionStrides o{};
  device::AttentionStrides lse{};
};

// q and o are [batch, rows, heads, columns], k and v [batch, keys, kv_heads, columns], all packed;
// lse [batch, heads, rows].
struct AttentionShape {
  std::int64_t batch = 1;
  std::int64_t rows = 0;
  std::int64_t keys = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t columns = 128;
  std::int64_t v_columns = 128;
  bool causal = false;  // the last row sees all keys
  device::Element in = device::Element::BF16;
  bool from_first = false;  // if causal: instead, the first row sees only the first key
  std::int64_t window = 0;  // if causal, > 0: a row sees this many keys up to its last
  double scale = 0;         // 0: 1 / sqrt(columns)
  std::optional<AttentionLayout> layout = std::nullopt;  // for the forward only
};

struct AttentionAddresses {
  std::uint64_t q = 0;
  std::uint64_t k = 0;
  std::uint64_t v = 0;
  std::uint64_t o = 0;
  std::uint64_t lse = 0;
};

// cuDNN's fused forward for one shape.
class LibraryAttention {
 public:
  virtual ~LibraryAttention() = default;
  [[nodiscard]] virtual std::int64_t workspace_bytes() const = 0;
  // False if the library refuses.
  [[nodiscard]] virtual bool launch(const AttentionAddresses& at, std::uint64_t workspace,
                                    void* stream) const = 0;
};

struct BackwardAddresses {
  AttentionAddresses inputs;
  std::uint64_t d_o = 0;
  std::uint64_t dq = 0;
  std::uint64_t dk = 0;
  std::uint64_t dv = 0;
};

// cuDNN's fused backward for one shape; gradients have the type of the inputs.
class LibraryBackward {
 public:
  virtual ~LibraryBackward() = default;
  [[nodiscard]] virtual std::int64_t workspace_bytes() const = 0;
  // False if the library refuses.
  [[nodiscard]] virtual bool launch(const BackwardAddresses& at, std::uint64_t workspace,
                                    void* stream) const = 0;
};

class Cudnn {
 public:
  // For the current device.
  [[nodiscard]] static Result<Cudnn, Missing> open(const Search& search);
  // With `statistics` it also writes lse.
  [[nodiscard]] Result<std::unique_ptr<LibraryAttention>, Missing> prepare(
      const AttentionShape& shape, bool statistics) const;
  // `deterministic`: the same bits every time.
  [[nodiscard]] Result<std::unique_ptr<LibraryBackward>, Missing> prepare_backward(
      const AttentionShape& shape, bool deterministic) const;
  [[nodiscard]] const std::string& version() const { return version_; }

 private:
  std::shared_ptr<void> handle_;
  std::string version_;
};

}  // namespace harpe::library
