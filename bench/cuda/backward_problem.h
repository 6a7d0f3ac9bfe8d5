#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/cuda/backward_reference.h"
#include "bench/cuda/guarded.h"
#include "exec/cuda/kernels/backward/backward.h"
#include "exec/cuda/library/cudnn.h"

namespace harpe::bench {

// Rows of heads x columns.
struct BackwardResults {
  std::vector<float> dq;
  std::vector<float> dk;
  std::vector<float> dv;
  friend bool operator==(const BackwardResults&, const BackwardResults&) = default;
};

// A backward problem with its tensors: random inputs, a plausible lse, some queries that see
// nothing. Results are surrounded by poison, or hold values to add to (`what.carried`).
class BackwardProblem {
 public:
  BackwardProblem(Gpu& gpu, const AttentionCase& what, std::uint64_t seed, CUstream stream);

  [[nodiscard]] cuda::BackwardSpec spec() const;
  // For the library, which computes other numbers from the same inputs: it takes the queries as o.
  [[nodiscard]] library::BackwardAddresses addresses() const;

  // Resets results to their contents before a launch.
  void reset(CUstream stream) const;
  // Checks that nothing around the results was written.
  void check_rooms(Verdict* verdict, CUstream stream) const;
  [[nodiscard]] BackwardResults read_results(CUstream stream) const;
  struct Comparison {
    std::string wrong;  // "" if nothing is wrong
    double worst = 0;   // the largest error, in bounds
  };
  // Compares `samples` rows of each gradient with the reference on the host; 0: all rows.
  // Overwrites the results.
  [[nodiscard]] Comparison compare(const BackwardResults& results, std::int64_t samples,
                                   CUstream stream) const;

 private:
  [[nodiscard]] BackwardInputs read_inputs(CUstream stream) const;
  [[nodiscard]] std::vector<HeadRow> choose_rows(std::int64_t rows, std::int64_t heads,
                                                 std::int64_t samples) const;
  [[nodiscard]] std::vector<float> read(const GuardedRows& rows, CUstream stream) const;
  [[nodiscard]] std::array<const GuardedRows*, 3> results() const { return {&dq_, &dk_, &dv_}; }

  Gpu* gpu_;
  AttentionCase case_;
  std::uint64_t seed_;
  GuardedRows q_;
  GuardedRows k_;
  GuardedRows v_;
  GuardedRows d_o_;
  GuardedRows lse_;
  GuardedRows delta_;
  GuardedRows dq_;
  GuardedRows dk_;
  GuardedRows dv_;
};

}  // namespace harpe::bench
