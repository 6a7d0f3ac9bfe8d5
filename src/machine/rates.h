#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "machine/machine.h"

namespace harpe {

// Times of single steps on a machine, each without other traffic. docs/machine.md derives the
// models.

// The innermost level at which two processors meet: 0 within one level-0 group. Processors are
// numbered row-major, the outermost level first. Requires: different, both on the machine.
[[nodiscard]] int level_between(const Machine& machine, std::int64_t first, std::int64_t second);
// The innermost level whose groups hold all of `first` .. `first + (count - 1) * stride`.
[[nodiscard]] int level_of_group(const Machine& machine, std::int64_t first, std::int64_t stride,
                                 std::int64_t count);

// The line for a transport at a level; null where the machine has none.
[[nodiscard]] const TransportRate* find_transport(const Machine& machine, std::string_view via,
                                                  int level);
// How much later data that a kernel converts and stores at another processor arrives than copied
// bytes. Fitted to rings of four H200 and to sums of two, so it applies to processors with several
// SMs behind a switch; otherwise it is 0.
[[nodiscard]] Picoseconds converted_store_delay(const Machine& machine, int level);

// The most specific line for a leaf: by leaf and type, by leaf, by type, or for all. Among equally
// specific lines, the supplier's own comes before that of any supplier.
// Requires: check_machine.
[[nodiscard]] const LeafRate& find_rate(const Machine& machine, std::string_view leaf,
                                        std::string_view dtype, Supplier by = Supplier::Own);
// True if the kernel of few rows computes such a leaf.
[[nodiscard]] bool has_few_rows(const LeafRate& rate, const LeafShape& shape);
// The time of a leaf alone on a processor, without its launch, corrected by the samples of `by` and
// of any supplier. Never 0. The rate "*" is used for a leaf or dtype without its own. Requires:
// check_machine.
[[nodiscard]] Picoseconds leaf_time(const Machine& machine, std::string_view leaf,
                                    std::string_view dtype, const LeafShape& shape, bool causal,
                                    Supplier by = Supplier::Own);
// The number of waves: how often each of `sms` takes tiles that it holds until their last column or
// depth has arrived. Only the first wave can work on early chunks before the last chunk is there.
[[nodiscard]] double leaf_waves(const Machine& machine, std::string_view leaf,
                                std::string_view dtype, const LeafShape& shape, std::int64_t sms);
// No leaf of this kind is ever faster: its operations at peak, its bytes at full bandwidth.
[[nodiscard]] Picoseconds leaf_bound(const Machine& machine, std::string_view leaf,
                                     std::string_view dtype, double flops, double bytes,
                                     Supplier by = Supplier::Own);

// The time from the arrival of the last of `outstanding` puts until the proxy that waits for quiet
// detects it, while `groups` of the level below are active. It interpolates the level's samples
// linearly over groups and over ln(outstanding). Beyond the largest number of groups it
// extrapolates from the last two; otherwise it takes the nearest sample. `alone` is the flight time
// of the last put by itself; it counts as often as the samples say that a put queues behind others.
// 0 without samples.
[[nodiscard]] Picoseconds completion_time(const Machine& machine, int level, std::int64_t groups,
                                          std::int64_t outstanding, Picoseconds alone);
// The same for a NIC that drains earlier puts before a signal: `nic_drain` of the level plus the
// largest of its samples, interpolated linearly over groups. 0 where the level has no nic_drain.
[[nodiscard]] Picoseconds nic_drain_time(const Machine& machine, int level, std::int64_t groups);

// The supplier whose samples collective_time uses for this many ranks: `by`, or Any where its
// samples are of a nearer number of ranks. None where the level has no samples.
[[nodiscard]] std::optional<Supplier> collective_samples_of(const Machine& machine,
                                                            CollectiveKind kind, int level,
                                                            std::int64_t ranks, Supplier by);
// The time of a collective over `ranks` processors that meet at `level`, in `groups` of equally
// many that meet below it; 0: as few groups as possible. `bytes` are what one rank contributes. It
// interpolates between samples of that level and kind, and of the nearest number of ranks, at bytes
// that give ports the same load. Without samples it uses the transport `nccl`.
[[nodiscard]] Picoseconds collective_time(const Machine& machine, CollectiveKind kind, int level,
                                          std::int64_t ranks, double bytes, std::int64_t groups = 0,
                                          Supplier by = Supplier::Own);

}  // namespace harpe
