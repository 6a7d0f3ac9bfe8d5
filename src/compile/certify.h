#pragma once

#include <cstdint>
#include <string>

#include "plan/plan.h"
#include "support/diag.h"
#include "verify/verify.h"

namespace harpe {

// Plans of at most this many ranks, or this many tasks, are checked block by block (commir.md
// 10.6).
constexpr std::int64_t kFullRanks = 64;
constexpr std::int64_t kFullTasks = 1'000'000;

[[nodiscard]] VerifyLevel level_for(const Plan& plan);

// Checks that the plan's tasks are those that its schedule lowers to, so that proofs of its smaller
// likenesses apply to it. Errors: U124 the file of this path has other tasks.
[[nodiscard]] Checked<Ok> check_derived(const Plan& plan, const std::string& path);

// Full: verify. Reduced: the plan's structure, acyclicity, residency and memory at full size, and
// every block of the same schedule on meshes cut to at most 3 and at most 4 ranks per axis. Errors:
// verify's; for a reduced case with a note that names its mesh.
[[nodiscard]] Checked<Certificate> certify(const Plan& plan, VerifyLevel level,
                                           const VerifyOptions& options = {});

// The same for a schedule whose plan is too large to make: every block of its small likenesses, and
// the schedule's own rules at full size (check_rules). Memory is checked if the likenesses have
// equal slots up to sizes, since then the full plan has them too. Errors: certify's; check_rules'.
[[nodiscard]] Checked<Certificate> certify_schedule(const Program& program, const Mesh& mesh,
                                                    const NormalForm& form,
                                                    const VerifyOptions& options = {});

// Proves a plan block by block or, if it has too many blocks, by its rules and a small likeness.
// Requires: a plan of more than kFullRanks ranks is what its schedule lowers to (check_derived).
// Errors: certify's; certify_schedule's.
[[nodiscard]] Checked<Certificate> prove(const Plan& plan, const TimeLimit& limit = {});

// What a certificate covers, in words: "every block of every rank".
[[nodiscard]] std::string coverage_of(const Certificate& certificate);

}  // namespace harpe
