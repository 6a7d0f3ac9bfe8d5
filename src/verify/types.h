#pragma once

#include <vector>

#include "ir/dtype.h"
#include "plan/plan.h"
#include "verify/model.h"

namespace harpe::verifier {

// The types that slots of one buffer may have, from the program and the normal form (D14). A type
// appears once for each nest or move that gives it.
struct BufferTypes {
  std::vector<DType> staged;   // of a stage's slots: its `wire`, else the buffer's type
  std::vector<DType> drained;  // of a drain's slots
  std::vector<DType> states;   // of a statement's accumulator or result
};

// Per buffer of the model. Requires: the form is the model's.
[[nodiscard]] std::vector<BufferTypes> types_of(const NormalForm& form, const Model& model);

// The types a slot of this level may have; at least one.
[[nodiscard]] std::vector<DType> types_at(Level level, const BufferModel& buffer,
                                          const BufferTypes& types);

// "f32", "bf16 or f32".
[[nodiscard]] std::string print_types(const std::vector<DType>& types);

}  // namespace harpe::verifier
