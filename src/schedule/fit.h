#pragma once

#include <string>
#include <vector>

#include "ir/form.h"
#include "machine/machine.h"
#include "machine/mesh.h"

namespace harpe {

// A move whose transport was replaced.
struct Refit {
  std::string nest;
  std::string buffer;
  MeshRef over;
  Via from = Via::Ce;
  Via to = Via::Ce;
  friend bool operator==(const Refit&, const Refit&) = default;
};
struct FittedForm {
  NormalForm form;
  std::vector<Refit> refits;  // empty if the form is unchanged
};

// Replaces transports that the machine lacks. Named schedules know the mesh but not the machine: a
// ring over nodes may use copy engines, which cannot reach another node. Such moves go by proxy, or
// by library (NCCL) if they are bulk or if proxies do not reach all ranks either; initiator and
// signal are set to what that transport allows. Inline moves, and moves for which the machine has
// no transport at all, stay unchanged (reported as M118).
// Requires: a form that lowers on this mesh; mesh.ranks() <= machine.processors().
[[nodiscard]] FittedForm fit_transports(const NormalForm& form, const Mesh& mesh,
                                        const Machine& machine);

}  // namespace harpe
