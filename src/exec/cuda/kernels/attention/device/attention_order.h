#pragma once

#include "exec/cuda/kernels/attention/device/kv_walk.h"

namespace harpe::device {

// Which query tile the `ticket`-th is: groups of slices one after the other, in a group the last
// rows first (under a causal mask they see most), the slices of a group side by side.
struct AttentionTicket {
  int tile;
  int slice;
};

HP_SHARED_CODE AttentionTicket attention_ticket(int ticket, int tiles, int slices, int per_group) {
  const int group = ticket / (tiles * per_group);
  const int rest = ticket - group * tiles * per_group;
  const int here = smaller(per_group, slices - group * per_group);
  return {tiles - 1 - rest / here, group * per_group + rest % here};
}

}  // namespace harpe::device
