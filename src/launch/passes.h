#pragma once

#include "launch/draft.h"

// The passes over a launch plan, in the order of make_launches. Where its precondition does not
// hold, a pass leaves the launch unchanged and records why (Decision).
namespace harpe::launch {

// Tasks that the schedule made one kernel become one launch.
// Precondition: each task has a kernel whose panels can be joined; it waits for at most one signal
// and has one arrival; the target has a kernel for the result (Offers::choose).
// Order: the waits move inside, one for each arrival. Data: K chunks and keys in the plan's order.
// Rounding: a panel's sum stays in the kernel, in f32.
void join_panels(Draft& draft);

// Joins the kernels of one task, and of tasks behind it that do the same to further ragged rows.
// Precondition of further tasks: all their kernels count rows; nothing is awaited or raised between
// them. Order, data: no kernel depends on another. Rounding: unchanged.
void batch_rows(Draft& draft);

// Joined kernels read the rank's own inputs in place instead of their copies.
// Precondition: a copy within the rank, of its own `in` homes, in the same type; all operands of an
// attention arrival were copied, or none.
// Order: the wait for the copy vanishes. Data: a copy without another reader is skipped. Its
// signals are not raised where only these kernels waited for them. Rounding: unchanged.
void read_in_place(Draft& draft);

// A rank's copies by `tma` become work of its first waiting kernel.
// Precondition: all of them copy inputs, wait for entries alone and raise one signal; the kernel
// starts with the execution; GPUs are not shared.
// Order: each chunk raises its signal once it has arrived. Data, rounding: unchanged.
void fuse_copies(Draft& draft);

// GEMMs store partial sums, and attention of few queries stores states, where copies right behind
// them would take them. Panels are cut along one axis where copies take parts of them
// (cut_panels.h).
// Precondition: copies by `sm` that wait for entries alone, raise at most one signal and are the
// only readers, alone or together; sums in the operands' type, states in their own type.
// Order: a panel's signal is raised once it is stored; the copies' waits move before the launch;
// sent panels behind the last one that stays come first. Data: what is sent is not stored here.
// Rounding: one, as the copy's.
void store_at_peers(Draft& draft);

// Panels that stay on the rank add what other ranks have stored here, a sum or the parts of a
// state, and are stored at home. If none stays, because everything is sent and a copy is left here,
// a panel adds up what lies here.
// Precondition: the totals are right behind: one, or one for each part of a drain that is cut;
// every signal that they wait for is an addend's; GPUs are not shared. Order: addends are awaited
// inside.
// Data: the own sum comes first, or, where it is sent too, in its place; addends are in the plan's
// order. Rounding: one, as the total's.
void add_at_home(Draft& draft);

// Kernels store at home what a total right behind would only round.
// Precondition: the total has one source and no waits; the launch makes all of it, and no other
// task uses the state; the home has the operands' type, or f32.
// Order, data: the state is not stored. Rounding: one, as the total's.
void store_at_home(Draft& draft);

// Kernels that store a result at home also store it where copies right behind them would take it.
// Precondition: copies by `sm` that wait for entries alone and raise at most one signal; they copy
// whole panels that the launch stores, in the same type; the target has a kernel (Offers::choose).
// Order: a copy's signal is raised once all of it is stored. Data: a panel without a sum of its own
// stores what the first panel stores. Rounding: unchanged.
void store_replicas(Draft& draft);

// Kernels apply the pointwise function of a task right behind them to their panels before they
// store them: a bias is added, then a gelu taken. Tasks behind each other become several maps.
// Precondition: the task waits for nothing; it is the only reader of everything that the kernels
// store, which is no result of the caller's; its result has the same axes; the same holds on all
// ranks; the target has a kernel (Offers::choose).
// Order: its other operands are there when the launch begins. Data: what it reads is not stored.
// Rounding: one, as the task's; the rounding of what it reads vanishes.
void fuse_maps(Draft& draft);

// On ranks that share a GPU, kernels wait before they start. A kernel that waits inside holds its
// SMs, and the waiting kernels of several ranks could hold a whole GPU, so that no SM is left for
// the kernels that raise their signals.
// Order: a kernel starts once everything that it waits for is there. Data, rounding: unchanged.
void wait_before(Draft& draft);

// Chooses the SMs that waiting kernels leave free for kernels that must run beside them, the
// launches whose waits they start behind (`begun`), and the flags that the copy engine raises.
// Precondition of flags: the GPU is not shared; the copy engine does the whole launch; all signals
// are flags of other ranks.
// Order: a waiting kernel starts where everything that it waits for can still run. Data: unchanged.
// Rounding: with fewer SMs a kernel may cut K differently.
void reserve_sms(Draft& draft);

// Chooses the variant of every kernel that has one. Rounding: it includes the cuts along K.
void choose_variants(Draft& draft);

// Elements that a kernel stores for another rank signal their own arrival, in place of a flag.
// Precondition: one fused store raises the flag, and only addends of one kernel wait for it; they
// read exactly what the fused store stores, and no other launch touches it; threads of both kernels
// move the elements; the kernel awaits at most `most_in_data` bytes in this way. Where plans take
// turns, executors keep that memory apart (plan/launch_signals.h).
// Order: the signal orders each element's store before its addend, and nothing else. Data,
// rounding: unchanged.
void signal_in_data(Draft& draft);

// A kernel that is all of an execution on its rank begins and ends the execution itself: no other
// kernel stands between it and the next one. If kernels without signals follow it, it only begins
// it.
// Precondition: the target's kernel can, awaits or raises signals inside, and counts no rows; other
// launches of the rank follow in its queue, and their only signals are those that they await before
// their kernels; GPUs are not shared; the kernel reads inputs of its rank, and what its own signals
// bring.
// Order: the kernel may read these before the waits of the Entry and of the launch are over.
// Nothing else changes. Data, rounding: unchanged.
void bound_epochs(Draft& draft);

}  // namespace harpe::launch
