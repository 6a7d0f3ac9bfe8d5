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
  Reduced,  // the same normal form with every mesh axis and its digits cut to at most 3 and to at
            // most 4
};

// What was proved: for all inputs, leaf functions and interleavings, every output block at every
// home equals the sequential program's, modulo the monoid laws, and no execution blocks
// (commir.md 10.1).
struct Certificate {
  VerifyLevel level = VerifyLevel::Full;
  std::vector<std::string> cases;  // Reduced: where every block was checked, "cp=3"
  // Reduced: shape, order and memory of the plan itself were checked. Without: what the rules of
  // commir.md 4 to 8 ask of its schedule, at full size.
  bool has_plan = true;
  std::int64_t tasks = 0;
  std::int64_t happens_before_edges = 0;  // syncs and barriers
  std::int64_t blocks_checked = 0;        // output blocks at homes
  std::int64_t peak_bytes = 0;            // largest arena over ranks; 0: not known without a plan
};

constexpr std::int64_t kSmCount = 132;  // of an H200

struct VerifyOptions {
  std::optional<std::int64_t> memory_limit_bytes;  // per rank; none: reported, not checked
  std::int64_t sm_count = kSmCount;  // per rank; plans do not name their machine (decision 0008)
  TimeLimit limit = {};
};

// Proves the plan or reports the first finding. Reads the plan alone (program, mesh and normal form
// are in it); shares no reasoning with the lowering.
// Errors: V2xx structure, V3xx deadlock, V4xx races, V5xx coverage and operands, V6xx memory; I505
// the time is over.
[[nodiscard]] Checked<Certificate> verify(const Plan& plan, const VerifyOptions& options = {});

}  // namespace harpe
