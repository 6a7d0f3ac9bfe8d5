#pragma once

#include "exec/cuda/device/fences.cuh"
#include "exec/cuda/device/wait_args.h"

// What blocks note about themselves in traces. Without a place for notes, nothing is noted.
namespace harpe::device {

// Called by one thread of a block.
HP_DEVICE void note_begin(const WaitContext& context, bool copies) {
  if (context.notes == nullptr) return;
  BlockNotes& own = context.notes[blockIdx.x];
  own.copies = copies ? 1 : 0;
  own.begin_ns = global_timer();
}

// Called by each storing thread, behind its last stores.
HP_DEVICE void note_end(const WaitContext& context) {
  if (context.notes == nullptr) return;
  max_relaxed_gpu(&context.notes[blockIdx.x].end_ns, global_timer());
}

// Called when a thread that loads for its block reaches a wait. It loads ahead, so the block stands
// still only once all loaded data is used. Returns then, or as soon as `has_come` is true.
template <class Used, class Come>
HP_DEVICE void note_idle(const WaitContext& context, const Used& is_used, const Come& has_come) {
  if (context.notes == nullptr) return;
  while (!is_used()) {
    if (has_come()) return;
  }
  context.notes[blockIdx.x].idle_ns = global_timer();
}

// Called behind that wait.
HP_DEVICE void note_stand(const WaitContext& context) {
  if (context.notes == nullptr) return;
  BlockNotes& own = context.notes[blockIdx.x];
  if (own.idle_ns == 0 || own.stand_count == kMostStands) return;
  own.stands[own.stand_count++] = {own.idle_ns, global_timer()};
  own.idle_ns = 0;
}

}  // namespace harpe::device
