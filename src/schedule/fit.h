#pragma once

#include <string>
#include <vector>

#include "ir/form.h"
#include "machine/machine.h"
#include "machine/mesh.h"

namespace harpe {

// A move that goes another way than its schedule says.
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
  std::vector<Refit> refits;  // none: the form as it was
};

// Named schedules know meshes but no machines: a ring over nodes may ask for copy engines, which
// reach no other node. Such moves go by proxy, or by library where they are bulk or where proxies
// do not reach all ranks either, started and signalled as that way allows. Moves for which the
// machine has no way at all, and those in place, stay as they are (M118 tells).
// Requires: a form that lowers on this mesh; mesh.ranks() <= machine.processors().
[[nodiscard]] FittedForm fit_transports(const NormalForm& form, const Mesh& mesh,
                                        const Machine& machine);

}  // namespace harpe
