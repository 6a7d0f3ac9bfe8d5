#pragma once

#include <string>

#include "schedule/fields.h"
#include "schedule/state.h"

namespace harpe {

// parallelize(N, d, a):  for d in n { s }  ->  par d on a { s }: rank coordinate i runs d = i
// Requires: a nest (S011); a digit that it may bind (S013, S022-S024), not of a seq axis (S201);
//           mesh axes (S014-S016) with as many ranks as blocks (S202), none used by another par of
//           N (S203); no move of N that is chunked by d (S204).
// Keeps:    the set of points (commir.md theorem 1).
struct Parallelize {
  static constexpr std::string_view kName = "parallelize";
  std::string nest;
  std::string digit;
  MeshRef axes;
  static constexpr auto fields() {
    return std::tuple{positional("nest", &Parallelize::nest),
                      positional("digit", &Parallelize::digit),
                      positional("axes", &Parallelize::axes)};
  }
  friend bool operator==(const Parallelize&, const Parallelize&) = default;
};

struct ParallelizeFacts {
  std::size_t nest = 0;
  std::size_t position = 0;  // after the pars at the beginning of the nest
  Par par;
};

[[nodiscard]] Checked<ParallelizeFacts> check(const ScheduleState& state, const Parallelize& step);
[[nodiscard]] ScheduleState apply(ScheduleState state, const ParallelizeFacts& facts);

// The par of a nest that runs over mesh axis `axis`, or none.
[[nodiscard]] const Par* find_par_on(const NestForm& nest, std::string_view axis);

}  // namespace harpe
