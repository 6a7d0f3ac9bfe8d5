#pragma once

#include "exec/cuda/kernels/attention/device/kv_walk.h"

namespace harpe::device {

// The query tile of a ticket; a slice is one head of one batch entry. Groups of slices follow each
// other. Within a group the last rows come first, since they see most keys under a causal mask, and
// for each tile of rows all slices of the group.
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
