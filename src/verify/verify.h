#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "support/diag.h"
#include "support/time_limit.h"

namespace harpe {

enum class VerifyLevel : std::uint8_t {
  Full,     // every block of every rank
  Reduced,  // small versions of the schedule: each mesh axis and digit cut to at most 3, and to 4
};

// The result of a proof: for all inputs, leaf functions and interleavings, every output block at
// every home equals the sequential program's, modulo the monoid laws, and no execution blocks
// (commir.md 10.1).
struct Certificate {
  VerifyLevel level = VerifyLevel::Full;
  std::vector<std::string> cases;  // Reduced: the meshes on which every block was checked, "cp=3"
  // Reduced: whether shape, order and memory of the plan itself were checked. If false, only the
  // rules of commir.md 4 to 8 for its schedule were checked, at full size.
  bool has_plan = true;
  std::int64_t tasks = 0;
  std::int64_t happens_before_edges = 0;  // syncs and barriers
  std::int64_t blocks_checked = 0;        // output blocks at homes
  std::int64_t peak_bytes = 0;            // largest arena over ranks; 0: unknown without a plan
};

constexpr std::int64_t kSmCount = 132;  // of an H200

struct VerifyOptions {
  std::optional<std::int64_t> memory_limit_bytes;  // per rank; none: not checked
  std::int64_t sm_count = kSmCount;  // per rank; plans do not name their machine (decision 0008)
  TimeLimit limit = {};
};

// Proves the plan or reports the first finding. Reads only the plan, which contains program, mesh
// and normal form; shares no code with the lowering.
// Errors: V2xx structure, V3xx deadlock, V4xx races, V5xx coverage and operands, V6xx memory; I505
// the time limit expired.
[[nodiscard]] Checked<Certificate> verify(const Plan& plan, const VerifyOptions& options = {});

}  // namespace harpe
