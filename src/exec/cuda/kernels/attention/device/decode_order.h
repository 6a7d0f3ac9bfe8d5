#pragma once

#include "exec/cuda/device/divisor.h"

// The order of the (sequence, head group) pairs that decode.cuh works on. A head group is all query
// heads of a key head, or one of several equal *cuts* of them. With cuts all first groups of the
// key heads come first, then all second groups, and so on. So with as many thread blocks for each
// cut the same keys are read at the same time for all cuts, and all but one read find them in the
// L2 cache.
namespace harpe::device {

// The parts of a pair are joined in two steps: each bunch of consecutive parts by the block with
// its last one, then the bunches by the block with the last part of the pair. So no block reads
// many states, one after the other. Up to eight states are read at once: then all parts are one
// bunch. bunch_of (offers/few_queries.h) is the same for the host.
HP_SHARED_CODE int parts_of_bunch(int parts) {
  constexpr int kAtOnce = 9;
  if (parts <= kAtOnce) return parts;
  int bunch = 4;
  while (bunch * bunch < parts) ++bunch;
  return bunch;
}

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
