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

// A case with its tensors: random inputs, outputs amid poison, and what they should be.
class AttentionProblem {
 public:
  // Results lie on `home`, which `gpu` reaches.
  AttentionProblem(Gpu& gpu, Gpu& home, AttentionCase problem, std::uint64_t seed, CUstream stream);

  [[nodiscard]] const AttentionCase& what() const { return case_; }
  [[nodiscard]] const GuardedRows& q() const { return q_; }
  [[nodiscard]] const GuardedRows& k() const { return k_; }
  [[nodiscard]] const GuardedRows& v() const { return v_; }
  [[nodiscard]] const GuardedRows& o() const { return o_; }
  [[nodiscard]] const GuardedRows& lse() const { return lse_; }

  // All inputs at their places, no flags.
  [[nodiscard]] cuda::AttentionSpec spec() const;
  // As `spec`, with every chunk and every panel's queries in places of their own where nothing is
  // until `parcels` were delivered from `source`'s memory (null: the host's); flags are numbered
  // chunks first.
  [[nodiscard]] cuda::AttentionSpec arriving_spec(const Signals& signals, std::uint32_t arrivals,
                                                  const Gpu* source);
  [[nodiscard]] const std::vector<Parcel>& parcels() const { return parcels_; }
  // As `spec`, with the same places filled by blocks of the kernel itself.
  [[nodiscard]] cuda::AttentionSpec fetching_spec(const Signals& signals, int copy_blocks);

  // Poison, or the carried state, in results; poison where inputs arrive.
  void reset(CUstream stream) const;
  // Compares with the reference; `rows` of each batch entry, spread over all, or all where it is 0.
  void check(Verdict* verdict, CUstream stream);
  // The same for a copy: o's rows, then lse's, as they lie here.
  void check_copy(Address copy, Verdict* verdict, CUstream stream);
  void sample_rows(std::int64_t rows) { sampled_ = rows; }

 private:
  // Where copies of the inputs come from.
  struct Sources {
    Address q;
    Address k;
    Address v;
  };
  // Has copies made before a flag is raised: how to wait for it.
  using Bring = std::function<device::FlagWait(int flag, std::vector<RowCopy> copies)>;

  void make_state(std::uint64_t seed, CUstream stream);
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
  GuardedRows v_;
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
