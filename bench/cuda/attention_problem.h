#pragma once

#include <optional>
#include <vector>

#include "bench/cuda/attention_case.h"
#include "bench/cuda/courier.h"
#include "bench/cuda/guarded.h"
#include "bench/cuda/signals.h"
#include "exec/cuda/attention.h"

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
  // until `parcels` were delivered; flags are numbered chunks first.
  [[nodiscard]] cuda::AttentionSpec arriving_spec(const Signals& signals, std::uint32_t arrivals);
  [[nodiscard]] const std::vector<Parcel>& parcels() const { return parcels_; }

  // Poison, or the carried state, in results; poison where inputs arrive.
  void reset(CUstream stream) const;
  // Compares with the reference; `rows` of each batch entry, spread over all, or all where it is 0.
  void check(Verdict* verdict, CUstream stream);
  // The same for a copy: o's rows, then lse's, as they lie here.
  void check_copy(Address copy, Verdict* verdict, CUstream stream);
  void sample_rows(std::int64_t rows) { sampled_ = rows; }

 private:
  // Consecutive rows of one tensor in every batch entry, moved to a place of their own.
  struct Landing {
    GuardedRows rows;
    std::int64_t batch_stride;
  };
  void make_state(std::uint64_t seed, CUstream stream);
  [[nodiscard]] cuda::HeadTensor land(const GuardedRows& from, Address source, const RowRange& rows,
                                      std::int64_t all, std::int64_t head, Parcel& parcel);
  [[nodiscard]] Address host_copy(const GuardedRows& rows, CUstream stream);
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
  std::vector<cuda::MappedMemory> sources_;
  std::vector<GuardedRows> landings_;
  std::vector<Parcel> parcels_;
  std::optional<cuda::DeviceMemory> reference_;  // value, bound, lse, lse bound
  std::int64_t sampled_ = 0;
};

}  // namespace harpe::bench
