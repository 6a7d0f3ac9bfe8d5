#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "machine/machine.h"

namespace harpe {

// Times of single things on a machine, each alone on it. docs/machine.md derives the models.

// The innermost level at which two processors meet: 0 within one level-0 group. Processors are
// numbered row-major, the outermost level first. Requires: different, both on the machine.
[[nodiscard]] int level_between(const Machine& machine, std::int64_t first, std::int64_t second);
// The innermost level whose groups hold all of `first` .. `first + (count - 1) * stride`.
[[nodiscard]] int level_of_group(const Machine& machine, std::int64_t first, std::int64_t stride,
                                 std::int64_t count);

// The line for a transport at a level, or null where the machine has none there.
[[nodiscard]] const TransportRate* find_transport(const Machine& machine, std::string_view via,
                                                  int level);
// What a kernel converts and stores at another processor is there so much later than copied bytes.
// Fitted to rings of four H200 and to sums of two, so it holds for processors with several
// multiprocessors behind a switch; for others it is 0.
[[nodiscard]] Picoseconds converted_store_delay(const Machine& machine, int level);

// The line for a leaf: the most particular that there is, of the leaf and type, of the leaf, of the
// type, of all; of these the supplier's own before anybody's, which is the leaf's own.
// Requires: check_machine.
[[nodiscard]] const LeafRate& find_rate(const Machine& machine, std::string_view leaf,
                                        std::string_view dtype, Supplier by = Supplier::Own);
// Whether the kernel of few rows does such a leaf.
[[nodiscard]] bool has_few_rows(const LeafRate& rate, const LeafShape& shape);
// A leaf alone on a processor, without its launch: corrected by the samples of `by` and of anybody.
// Never 0; the rate "*" stands in for a leaf or dtype without its own. Requires: check_machine.
[[nodiscard]] Picoseconds leaf_time(const Machine& machine, std::string_view leaf,
                                    std::string_view dtype, const LeafShape& shape, bool causal,
                                    Supplier by = Supplier::Own);
// How often each of `sms` takes what it then holds until the last column or depth is there: only
// the first of these waves can work on what comes piece by piece before the last piece is there.
[[nodiscard]] double leaf_waves(const Machine& machine, std::string_view leaf,
                                std::string_view dtype, const LeafShape& shape, std::int64_t sms);
// No leaf of this kind is ever faster: its operations at peak, its bytes at full bandwidth.
[[nodiscard]] Picoseconds leaf_bound(const Machine& machine, std::string_view leaf,
                                     std::string_view dtype, double flops, double bytes,
                                     Supplier by = Supplier::Own);

// From the last of `outstanding` puts being on the other side until the proxy that drains them
// knows, where `groups` of the level below are at work: on straight lines over groups and over
// ln(outstanding) between the samples of the level; beyond the last number of groups as between the
// last two, beyond others as the nearest. `alone` is what the last put's way takes by itself: as
// many more as the samples say it stands behind. 0 where there are no samples.
[[nodiscard]] Picoseconds completion_time(const Machine& machine, int level, std::int64_t groups,
                                          std::int64_t outstanding, Picoseconds alone);
// The same of a NIC that drains what is before a signal: `nic_drain` of the level and, on straight
// lines over groups, the most of its samples. 0 where the level has none.
[[nodiscard]] Picoseconds nic_drain_time(const Machine& machine, int level, std::int64_t groups);

// Whose samples collective_time takes for so many ranks: `by`'s, or anybody's where these are of a
// nearer number of ranks; nothing where the level has none.
[[nodiscard]] std::optional<Supplier> collective_samples_of(const Machine& machine,
                                                            CollectiveKind kind, int level,
                                                            std::int64_t ranks, Supplier by);
// A collective over `ranks` processors that meet at `level`, in `groups` of equally many
// that meet below it; 0: as few groups as hold them. `bytes` are what one puts in. Interpolated
// between samples of that level and kind, and of the nearest number of ranks, at bytes that give
// ports as much to carry; where there is none, from the transport `nccl`.
[[nodiscard]] Picoseconds collective_time(const Machine& machine, CollectiveKind kind, int level,
                                          std::int64_t ranks, double bytes, std::int64_t groups = 0,
                                          Supplier by = Supplier::Own);

}  // namespace harpe
