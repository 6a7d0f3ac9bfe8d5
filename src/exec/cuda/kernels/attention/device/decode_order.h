#pragma once

#include "exec/cuda/device/divisor.h"

// The order of the (sequence, head group) pairs that decode.cuh works on. A head group is all query
// heads of a key head, or one of several equal *cuts* of them. With cuts all first groups of the
// key heads come first, then all second groups, and so on. So with as many thread blocks for each
// cut the same keys are read at the same time for all cuts, and all but one read find them in the
// L2 cache.
namespace harpe::device {

struct DecodeCuts {
  Divisor cuts;  // head groups of a key head
  Divisor sequences;
};

// Head group g has the query heads from g times its size on.
struct DecodePair {
  int sequence;
  int group;
};

// `round` counts the sequences once for each cut.
HP_SHARED_CODE DecodePair pair_of(const DecodeCuts& cuts, int round, int key_head) {
  return {.sequence = round % cuts.sequences,
          .group = key_head * cuts.cuts.number + round / cuts.sequences};
}

HP_SHARED_CODE int index_of(const DecodeCuts& cuts, const Divisor& kv_heads,
                            const DecodePair& pair) {
  const int round = pair.group % cuts.cuts * cuts.sequences.number + pair.sequence;
  return round * kv_heads.number + pair.group / cuts.cuts;
}

}  // namespace harpe::device
