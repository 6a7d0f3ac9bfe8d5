#pragma once

#include "launch/draft.h"

// The passes over a launch plan, in the order of make_launches. Each leaves a launch as it is where
// its precondition does not hold, and notes why (Decision).
namespace harpe::launch {

// Tasks that the schedule made one kernel become one launch.
// Precondition: a kernel for each that joins panels; at most one signal a task; one arrival a task;
// the target's kernel can (choose).
// Order: the waits move inside, one for each arrival. Data: K chunks and keys in the plan's order.
// Rounding: a panel's sum stays in the kernel, in f32.
void join_panels(Draft& draft);

// Kernels of one task, and of tasks that do the same to further ragged rows side by side, become
// fewer.
// Precondition of further tasks: all their kernels count rows; nothing is awaited or raised
// between. Order, data: none depends on another. Rounding: as it is.
void batch_rows(Draft& draft);

// Joined kernels read the rank's own inputs where they lie, and not the copies of them.
// Precondition: a copy within the rank, of its own `in` homes, in the same type; all operands that
// were copied, or none.
// Order: the wait for the copy vanishes. Data: a copy that no one else reads is not made; its
// signals are not raised where only these kernels waited for them. Rounding: as it is.
void read_in_place(Draft& draft);

// A rank's copies by `tma` become work of its first waiting kernel.
// Precondition: all of them are copies of inputs that wait for the beginning alone and raise one
// signal; the kernel begins with the execution; GPUs are not shared.
// Order: each chunk raises its signal once it has arrived. Data, rounding: as they are.
void fuse_copies(Draft& draft);

// GEMMs store partial sums, and attention of few queries states, where copies right behind them
// would take them. Panels are cut along one axis where copies take parts of them (cut_panels.h).
// Precondition: copies by `sm` that wait for beginnings alone, raise one signal at most and are
// sole readers, one or together; sums in the operands' type, states as they are. Order: a panel's
// signal is raised once it is stored; the copies' waits move before the launch; panels behind the
// last that stays come first. Data: what is sent is not stored here. Rounding: one, as the copy's.
void store_at_peers(Draft& draft);

// The panels that stay take what others have stored here as addends, a sum or the parts of a state,
// and are stored at home. Where
// none stays, since all of it is sent and a copy left here, a panel adds up what lies here.
// Precondition: the totals are right behind, one, or one for each part of a drain that is cut;
// every signal that they wait for is an addend's; GPUs are not shared. Order: addends are awaited
// inside. Data: the own sum comes first, or, where it is sent too, in its place; addends are in the
// plan's order. Rounding: one, as the total's.
void add_at_home(Draft& draft);

// Kernels store at home what a total right behind would only round.
// Precondition: one source, no waits; the launch makes all of it, and no one else uses the state;
// the home has the operands' type, or f32.
// Order, data: the state is not stored. Rounding: one, as the total's.
void store_at_home(Draft& draft);

// Kernels that store a result at home store it where copies right behind them would take it too.
// Precondition: copies by `sm` that wait for beginnings alone and raise one signal at most; of
// whole panels that are stored here, in the same type; the target's kernel can (choose). Order: a
// copy's signal is raised once all of it is stored. Data: a panel that makes nothing stores what
// the other one does. Rounding: as it is.
void store_replicas(Draft& draft);

// Kernels apply the pointwise function of a task right behind them to their panels before they
// store them: a bias is added, then a gelu taken. Tasks behind each other become several maps.
// Precondition: the task waits for nothing; it is the sole reader of all that the kernels store,
// which the caller does not have; its result has the same axes; so on all ranks; the target's
// kernel can (choose).
// Order: its other operands are there when the launch begins. Data: what it reads is not stored.
// Rounding: one, as the task's; that of what it reads vanishes.
void fuse_maps(Draft& draft);

// Kernels of ranks that share a GPU wait before they begin. One that waits inside holds its SMs,
// and kernels of several ranks may hold all of a GPU, so that none is left to raise what they wait
// for.
// Order: a kernel begins once all that it waits for is there. Data, rounding: as they are.
void wait_before(Draft& draft);

// SMs that waiting kernels leave free for kernels that must run beside them, launches whose waits
// they begin behind, and flags that the copy engine raises.
// Precondition of flags: the GPU is not shared; the copy engine does all of the launch; all signals
// are flags of other ranks.
// Order: a waiting kernel begins where all that it waits for can still run. Data: as they are.
// Rounding: fewer SMs may cut K otherwise.
void reserve_sms(Draft& draft);

// The variant of every kernel that has one. Rounding: cuts along K are part of it.
void choose_variants(Draft& draft);

// Elements that a kernel stores for another rank's say by themselves that they are there.
// Precondition: one fused store raises the flag, and addends of one kernel alone wait for it; they
// read just what the fused store stores, and no other launch touches it; threads of both kernels
// move elements; the kernel awaits at most `most_in_data` bytes so. Where plans take turns,
// executors keep that memory apart (plan/launch_signals.h).
// Order: the flag orders each element's store before its addend, and nothing else. Data, rounding:
// as they are.
void signal_in_data(Draft& draft);

// A kernel that is all of an execution on its rank begins and ends the execution itself: no other
// kernel stands between it and the next one. One that kernels without signals follow begins it.
// Precondition: the target's kernel can, awaits or raises signals inside, and counts no rows; other
// launches of the rank come behind it in its queue, and have no signals but those that they await
// before their kernels; GPUs are not shared; the kernel reads inputs of its rank, and what its own
// signals bring.
// Order: the kernel may read these before the waits of the Entry and of the launch are over. All
// else is as it is.
// Data, rounding: as they are.
void bound_epochs(Draft& draft);

}  // namespace harpe::launch
