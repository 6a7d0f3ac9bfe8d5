#pragma once

#include <optional>
#include <vector>

#include "bench/cuda/courier.h"
#include "bench/cuda/gemm_case.h"
#include "bench/cuda/guarded.h"
#include "bench/cuda/signals.h"
#include "exec/cuda/kernels/gemm/gemm.h"

namespace harpe::bench {

// A case with its tensors: random inputs, an output surrounded by poison, and the reference.
class GemmProblem {
 public:
  // C and its counters are on `home`, whose memory `gpu` can access.
  GemmProblem(Gpu& gpu, Gpu& home, GemmCase problem, std::uint64_t seed, CUstream stream);

  [[nodiscard]] const GemmCase& what() const { return case_; }
  [[nodiscard]] const GuardedRows& a() const { return a_; }
  [[nodiscard]] const GuardedRows& b() const { return b_; }
  [[nodiscard]] const GuardedRows& c() const { return c_; }

  // All inputs in place, without flags.
  [[nodiscard]] cuda::GemmSpec spec() const;
  // As `spec`, but every K chunk has separate memory that is empty until `parcels` are delivered;
  // its flag is its index in the order of panels and chunks. With `all`, B arrives too, every
  // second chunk's rows in separate memory.
  [[nodiscard]] cuda::GemmSpec arriving_spec(const Signals& signals, std::uint32_t arrivals,
                                             bool all);
  [[nodiscard]] const std::vector<Parcel>& parcels() const { return parcels_; }
  // As `spec`, but thread blocks of the kernel copy every panel's A. Requires: panels of one chunk.
  [[nodiscard]] cuda::GemmSpec fetching_spec(const Signals& signals, int copy_blocks);
  // A counter per panel, on `home`.
  void count_into(const Signals& counters, cuda::GemmSpec& spec) const;

  // Sets C to poison or to the values to add to, and the memory of arriving chunks to poison.
  void reset(CUstream stream) const;
  // Compares C, or a copy in its layout, with the reference: `rows` rows spread over the whole; 0:
  // all rows.
  void check(Verdict* verdict, CUstream stream);
  void check_copy(Address copy, Verdict* verdict, CUstream stream);
  void sample_rows(std::int64_t rows) { sampled_ = rows; }

 private:
  [[nodiscard]] GemmReferenceArgs reference_args() const;
  void take_reference(CUstream stream);
  [[nodiscard]] RowSample sample() const;
  [[nodiscard]] const std::vector<GuardedRows>& landings();
  [[nodiscard]] cuda::MappedMemory host_copy(const GuardedRows& rows) const;
  // Adds the chunk's rows of B to the last parcel.
  void send_b(const KChunkCut& k_chunk);

  Gpu* gpu_;
  Gpu* home_;
  CUstream home_stream_;
  GemmCase case_;
  std::uint64_t seed_;
  GuardedRows a_;
  GuardedRows b_;
  GuardedRows c_;
  GuardedRows row_;                           // the row of an AddRow map
  std::optional<cuda::DeviceMemory> start_;   // what C held before: m x n f32
  std::optional<cuda::MappedMemory> source_;  // A, if it arrives from here
  std::optional<cuda::MappedMemory> source_of_b_;
  std::vector<GuardedRows> landings_;
  std::vector<std::optional<GuardedRows>> landings_of_b_;  // by chunk; none: in B
  std::vector<Parcel> parcels_;
  std::optional<cuda::DeviceMemory> value_;
  std::optional<cuda::DeviceMemory> bound_;
  std::int64_t sampled_ = 0;
};

}  // namespace harpe::bench
