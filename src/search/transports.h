#pragma once

#include "ir/form.h"
#include "machine/machine.h"
#include "machine/mesh.h"

namespace harpe {

// The same schedule with transports that the machine has where its moves cross: named schedules are
// written for one host. A move for which there is none as it stands goes through proxies, with one
// fence per destination, where all its ranks meet at one level; else through NCCL. Rank r is
// processor r. Keeps: everything else; a move that no transport fits stays as it is.
[[nodiscard]] NormalForm fit_transports(const Mesh& mesh, const Machine& machine, NormalForm form);

}  // namespace harpe
