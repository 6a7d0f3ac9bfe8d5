#pragma once

#include <cstdint>
#include <vector>

#include "verify/model.h"

namespace harpe::verifier {

// What a slot that holds some digits of a buffer whole, and the others one value at a time, can
// have in it. A *content* is a choice of the latter; a *cell* is one block's place within a
// content. Block lengths differ (D12), so cells of two contents can overlap in memory whatever
// their numbers: two contents are never in the slot together.
struct Footprint {
  int buffer = 0;
  std::vector<bool> holds;
  std::vector<std::int64_t> cell_strides;     // per digit of the buffer; 0 where not held
  std::vector<std::int64_t> content_strides;  // per digit; 0 where held
  std::int64_t cells = 1;
  std::int64_t contents = 1;
  std::int64_t most_elements = 0;  // of the largest content
};

[[nodiscard]] Footprint make_footprint(const Model& model, int buffer,
                                       const std::vector<bool>& holds);

// Elements of the content that `block` belongs to, all its cells filled.
[[nodiscard]] std::int64_t content_elements(const Model& model, const Footprint& footprint,
                                            std::int64_t block);

}  // namespace harpe::verifier
