#pragma once

#include <cstdint>
#include <string>

#include "plan/plan.h"
#include "support/diag.h"
#include "verify/verify.h"

namespace harpe {

// Up to this many ranks, or this many tasks, every block is checked (commir.md 10.6).
constexpr std::int64_t kFullRanks = 64;
constexpr std::int64_t kFullTasks = 1'000'000;

[[nodiscard]] VerifyLevel level_for(const Plan& plan);

// Are these the tasks that the plan's schedule lowers to? Then its likenesses speak of them.
// Errors: U124 they are others, in the file of this path.
[[nodiscard]] Checked<Ok> check_derived(const Plan& plan, const std::string& path);

// Full: verify. Reduced: the plan's structure, acyclicity, residency and memory at full size, and
// every block of the same schedule on meshes cut to at most 3 and at most 4 ranks an axis. Errors:
// verify's; for a reduced case with a note that names its mesh.
[[nodiscard]] Checked<Certificate> certify(const Plan& plan, VerifyLevel level,
                                           const VerifyOptions& options = {});

// The same for a schedule whose plan is too large to be made: every block of its small likenesses,
// and of itself what `check_rules` asks at full size. Memory where the likenesses have the same
// slots, whatever their sizes: then so has it. Errors: certify's; check_rules'.
[[nodiscard]] Checked<Certificate> certify_schedule(const Program& program, const Mesh& mesh,
                                                    const NormalForm& form,
                                                    const VerifyOptions& options = {});

// Block by block; of what has too many blocks for that, the rules and a small likeness. Requires:
// the plan is what its schedule lowers to, where it has more than kFullRanks ranks (check_derived).
// Errors: certify's; certify_schedule's.
[[nodiscard]] Checked<Certificate> prove(const Plan& plan, const TimeLimit& limit = {});

// What a certificate speaks of, in words: "every block of every rank".
[[nodiscard]] std::string coverage_of(const Certificate& certificate);

}  // namespace harpe
