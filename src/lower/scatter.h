#pragma once

#include <optional>
#include <vector>

#include "ir/form.h"
#include "lower/nest_space.h"

namespace harpe {

// Targets of a statement whose partial states are combined together: all of an lse statement's,
// else one each. They have the same drains, deepest first.
struct StateGroup {
  std::vector<int> targets;            // indices into NestStmt::targets
  std::vector<const NestMove*> chain;  // drains in execution order
};

// D14: a drain to a home that is replicated along its axes is a reduce-scatter over some digit
// followed by an all-gather, never one full copy per peer. During the reduce-scatter the home
// counts as placed on these axes: that is a pin.
struct ScatterPin {
  int digit = -1;
  std::vector<int> axes;  // mesh axes
  int level = 0;          // index into StateGroup::chain
};

// The pins of a group's drains. A disjoint part keeps its own parallel digit. A reduction uses a
// digit with the axes' size that every target has and that is otherwise unused.
[[nodiscard]] std::vector<ScatterPin> scatter_pins(const Blocks& blocks, const NestSpace& space,
                                                   const NestStmt& stmt, const StateGroup& group);

// The form with one more digit, if a drain of `space` reduces to a replicated home and no digit of
// the right size can be scattered: splits the remainder of the targets' largest common axis.
[[nodiscard]] std::optional<NormalForm> with_scatter_digit(const NormalForm& form,
                                                           const Program& program,
                                                           const Blocks& blocks,
                                                           const NestSpace& space);

// Errors: F219 the drains or homes of an lse state's targets differ (not checked if `tied` is
// false: then every target is its own group).
[[nodiscard]] Checked<std::vector<StateGroup>> state_groups(const Blocks& blocks,
                                                            const NestSpace& space,
                                                            const NestStmt& stmt, bool tied);

}  // namespace harpe
