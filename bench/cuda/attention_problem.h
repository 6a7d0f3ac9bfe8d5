#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "bench/cuda/attention_case.h"
#include "bench/cuda/courier.h"
#include "bench/cuda/guarded.h"
#include "bench/cuda/signals.h"
#include "exec/cuda/kernels/attention/attention.h"

namespace harpe::bench {

// A case with its tensors: random inputs, outputs surrounded by poison, and the reference.
class AttentionProblem {
 public:
  // Results are on `home`, whose memory `gpu` can access.
  AttentionProblem(Gpu& gpu, Gpu& home, AttentionCase problem, std::uint64_t seed, CUstream stream);

  [[nodiscard]] const AttentionCase& what() const { return case_; }
  [[nodiscard]] const GuardedRows& q() const { return q_; }
  [[nodiscard]] const GuardedRows& k() const { return k_; }
  [[nodiscard]] const GuardedRows& v() const { return v_; }
  [[nodiscard]] const GuardedRows& o() const { return o_; }
  [[nodiscard]] const GuardedRows& lse() const { return lse_; }

  // All inputs in place, without flags.
  [[nodiscard]] cuda::AttentionSpec spec() const;
  // As `spec`, but every chunk, and every panel's queries, has separate memory that is empty until
  // `parcels` are delivered from `source`'s memory (null: the host's). Flags are numbered chunks
  // first.
  [[nodiscard]] cuda::AttentionSpec arriving_spec(const Signals& signals, std::uint32_t arrivals,
                                                  const Gpu* source);
  [[nodiscard]] const std::vector<Parcel>& parcels() const { return parcels_; }
  // As `spec`, but thread blocks of the kernel copy the inputs there.
  [[nodiscard]] cuda::AttentionSpec fetching_spec(const Signals& signals, int copy_blocks);

  // Sets results to poison or to the carried state, and the memory of arriving inputs to poison.
  void reset(CUstream stream) const;
  // Compares with the reference: `rows` rows of each batch entry, spread over all; 0: all rows.
  void check(Verdict* verdict, CUstream stream);
  // The same for a copy: o's rows, then lse's, in the layout of the results.
  void check_copy(Address copy, Verdict* verdict, CUstream stream);
  void sample_rows(std::int64_t rows) { sampled_ = rows; }

 private:
  // The sources of the copied inputs.
  struct Sources {
    Address q;
    Address k;
    Address v;
  };
  // Requests copies before a flag is raised; returns how to wait for the flag.
  using Bring = std::function<device::FlagWait(int flag, std::vector<RowCopy> copies)>;

  void make_state(std::uint64_t seed, CUstream stream);
  // The values of all batch entries, from key `first` on.
  [[nodiscard]] cuda::HeadTensor values(std::int64_t first) const;
  [[nodiscard]] cuda::AttentionSpec landing_spec(const Sources& from, const Bring& bring);
  [[nodiscard]] cuda::HeadTensor land(const GuardedRows& like, Address from, const RowRange& rows,
                                      std::int64_t head, std::vector<RowCopy>& copies);
  [[nodiscard]] Address copy_of(const GuardedRows& rows, const Gpu* on, CUstream stream);
  void take_reference(CUstream stream);
  void compare_all(Address o, Address lse, Verdict* verdict, CUstream stream);
  [[nodiscard]] RowSample sample() const;
  [[nodiscard]] AttentionReferenceArgs reference_args() const;

  Gpu* gpu_;
  Gpu* home_;
  CUstream home_stream_;
  AttentionCase case_;
  std::uint64_t seed_;
  GuardedRows q_;  // rows of heads x columns, batch entries one after another
  GuardedRows k_;
  GuardedRows v_;  // without use if keys hold the values
  GuardedRows o_;
  GuardedRows lse_;  // batch x heads rows
  std::optional<GuardedRows> start_o_;
  std::optional<GuardedRows> start_lse_;
  std::vector<cuda::MappedMemory> host_sources_;
  std::vector<cuda::DeviceMemory> peer_sources_;
  std::vector<GuardedRows> landings_;
  std::vector<Parcel> parcels_;
  std::optional<cuda::DeviceMemory> reference_;  // value, bound, lse, lse bound
  std::int64_t sampled_ = 0;
};

}  // namespace harpe::bench
