#pragma once

#include "exec/cuda/device/divisor.h"

// How the thread blocks of attention of few queries divide the key tiles, for host and device.
namespace harpe::device {

// `tiles` key tiles, of one (sequence, key head) pair after the other, cut into equal shares: share
// i begins at tile i * tiles / count. Requires: tiles > 0. There are `most` shares, or one for each
// tile where there are fewer tiles.
class KeyShares {
 public:
  KeyShares() = default;
  HP_SHARED_CODE KeyShares(int tiles, const Divisor& most)
      : most_(most),
        count_(tiles < most.number ? tiles : most.number),
        each_(tiles < most.number ? 1 : tiles / most),
        rest_(tiles < most.number ? 0 : tiles % most),
        tiles_(tiles) {}

  [[nodiscard]] HP_SHARED_CODE int count() const { return count_; }

  // The first tile of share `share`, from 0 to count. i * (each * most + rest) / most, without the
  // product of 64 bits.
  [[nodiscard]] HP_SHARED_CODE int begin(int share) const {
    return share * each_ + share * rest_ / most_;
  }

  // The share that has tile `tile`. The estimate is off by one at most.
  [[nodiscard]] HP_SHARED_CODE int share_of(int tile) const {
    const auto near = static_cast<int>(static_cast<float>(tile) * static_cast<float>(count_) /
                                       static_cast<float>(tiles_));
    const int share = near < count_ ? near : count_ - 1;
    if (begin(share) > tile) return share - 1;
    return begin(share + 1) <= tile ? share + 1 : share;
  }

 private:
  Divisor most_{};
  int count_ = 0;
  int each_ = 0;
  int rest_ = 0;
  int tiles_ = 0;
};

}  // namespace harpe::device
