#pragma once

#include "extension/records.h"

namespace harpe::python {

// Why a call of a PyTorch operator needs another route than the kernel itself; 0 goes to the
// kernel.
enum Way : int {
  kGradient = 1,  // a tensor requires a gradient
  kWatched = 2,   // the dispatcher must see the call
  kCast = 4,      // autocast is on for some device type
  kWrong = 8,     // an argument is not a tensor where the schema has one
};

// Binds the function find_ways(torch, kinds, arguments). `torch`: torch.Tensor and
// torch.nn.Parameter, whose functions are not overridden as those of subclasses are; functions that
// tell whether autocast and gradients are on; and functions that each tell whether something
// watches operators. `kinds`: per argument of the operator: t a tensor, o one or None, l a list of
// them, . anything else.
void bind_routes(nb::module_& module);

}  // namespace harpe::python
