#pragma once

#include "extension/records.h"

namespace harpe::python {

// Which way a call of an operator of PyTorch takes. It goes to the kernel itself where none of
// these holds.
enum Way : int {
  kGradient = 1,  // a tensor requires it
  kWatched = 2,   // the dispatcher has to see the call
  kCast = 4,      // autocast is on, for whatever type of device
  kWrong = 8,     // an argument is no tensor where the schema has one
};

// The function find_ways(torch, kinds, arguments). `torch`: torch.Tensor and torch.nn.Parameter,
// which have no functions of their own as subclasses do; functions that say whether autocast is on
// and whether gradients are; and functions of which each says whether something looks at operators.
// `kinds`: of the operator's arguments, in order: t a tensor, o one or None, l a list of them, .
// another.
void bind_routes(nb::module_& module);

}  // namespace harpe::python
