#pragma once

#include <optional>
#include <vector>

#include "bench/cuda/courier.h"
#include "bench/cuda/gemm_case.h"
#include "bench/cuda/guarded.h"
#include "bench/cuda/signals.h"
#include "exec/cuda/kernels/gemm/gemm.h"

namespace harpe::bench {

// A case with its tensors: random inputs, an output amid poison, and what it should be.
class GemmProblem {
 public:
  // C and its counters lie on `home`, which `gpu` reaches.
  GemmProblem(Gpu& gpu, Gpu& home, GemmCase problem, std::uint64_t seed, CUstream stream);

  [[nodiscard]] const GemmCase& what() const { return case_; }
  [[nodiscard]] const GuardedRows& a() const { return a_; }
  [[nodiscard]] const GuardedRows& b() const { return b_; }
  [[nodiscard]] const GuardedRows& c() const { return c_; }

  // All inputs at their places, no flags.
  [[nodiscard]] cuda::GemmSpec spec() const;
  // As `spec`, with every piece in a place of its own where nothing is until `parcels` were
  // delivered; its flag is its index in the order of panels and pieces. With `all` so does B, every
  // second piece's in a place of its own.
  [[nodiscard]] cuda::GemmSpec arriving_spec(const Signals& signals, std::uint32_t arrivals,
                                             bool all);
  [[nodiscard]] const std::vector<Parcel>& parcels() const { return parcels_; }
  // As `spec`, with every panel's A fetched by blocks of the kernel itself. Requires: panels of one
  // piece.
  [[nodiscard]] cuda::GemmSpec fetching_spec(const Signals& signals, int copy_blocks);
  // A counter per panel, on `home`.
  void count_into(const Signals& counters, cuda::GemmSpec& spec) const;

  // Poison, or what C held where it is added to, in C; poison where pieces arrive.
  void reset(CUstream stream) const;
  // Compares C (or a copy of it that lies like it) with the reference; `rows` of it, spread over
  // the whole, which are all where it is 0.
  void check(Verdict* verdict, CUstream stream);
  void check_copy(Address copy, Verdict* verdict, CUstream stream);
  void sample_rows(std::int64_t rows) { sampled_ = rows; }

 private:
  [[nodiscard]] GemmReferenceArgs reference_args() const;
  void take_reference(CUstream stream);
  [[nodiscard]] RowSample sample() const;
  [[nodiscard]] const std::vector<GuardedRows>& landings();
  [[nodiscard]] cuda::MappedMemory host_copy(const GuardedRows& rows) const;
  // Adds the piece's rows of B to the last parcel.
  void send_b(const PieceCut& piece);

  Gpu* gpu_;
  Gpu* home_;
  CUstream home_stream_;
  GemmCase case_;
  std::uint64_t seed_;
  GuardedRows a_;
  GuardedRows b_;
  GuardedRows c_;
  GuardedRows row_;                           // that an AddRow adds
  std::optional<cuda::DeviceMemory> start_;   // what C held: m x n f32
  std::optional<cuda::MappedMemory> source_;  // A, where it arrives from
  std::optional<cuda::MappedMemory> source_of_b_;
  std::vector<GuardedRows> landings_;
  std::vector<std::optional<GuardedRows>> landings_of_b_;  // by piece; none: in B
  std::vector<Parcel> parcels_;
  std::optional<cuda::DeviceMemory> value_;
  std::optional<cuda::DeviceMemory> bound_;
  std::int64_t sampled_ = 0;
};

}  // namespace harpe::bench
