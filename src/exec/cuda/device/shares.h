#pragma once

#include "exec/cuda/device/divisor.h"

// How a number of things is cut into consecutive shares, of which no two differ by more than one.
namespace harpe::device {

// The first thing of share `share`, from 0 to `shares`. Requires: all * shares fits in an int.
HP_SHARED_CODE int share_begin(int all, int share, const Divisor& shares) {
  return all * share / shares;
}

// The share that has thing `at`; of more shares than things some are empty. Requires: all * shares
// fits in an int.
HP_SHARED_CODE int share_of(int at, int all, int shares) { return ((at + 1) * shares - 1) / all; }

}  // namespace harpe::device
