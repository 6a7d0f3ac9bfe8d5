#pragma once

#include <vector>

#include "ir/dtype.h"
#include "plan/plan.h"
#include "verify/model.h"

namespace harpe::verifier {

// The types that slots of one buffer may have, read from the program and the normal form (D14). A
// type that several nests or moves give the buffer is there once for each.
struct BufferTypes {
  std::vector<DType> staged;   // what a stage brings: its `wire`, else the buffer's type
  std::vector<DType> drained;  // what a drain brings
  std::vector<DType> states;   // what a statement accumulates in, or stores
};

// Per buffer of the model. Requires: the form is the model's.
[[nodiscard]] std::vector<BufferTypes> types_of(const NormalForm& form, const Model& model);

// The types a slot of this level may have; at least one.
[[nodiscard]] std::vector<DType> types_at(Level level, const BufferModel& buffer,
                                          const BufferTypes& types);

// "f32", "bf16 or f32".
[[nodiscard]] std::string print_types(const std::vector<DType>& types);

}  // namespace harpe::verifier
