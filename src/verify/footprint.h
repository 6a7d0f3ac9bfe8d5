#pragma once

#include <cstdint>
#include <vector>

#include "verify/model.h"

namespace harpe::verifier {

// The possible contents of a slot that holds some digits of a buffer whole and one value at a time
// of the others. A *content* is a choice of those values; a *cell* is one block's place within a
// content. Block lengths differ (D12), so cells of two contents can overlap in memory whatever
// their numbers. A slot therefore holds one content at a time.
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

// Elements of the content that `block` belongs to, with all its cells filled.
[[nodiscard]] std::int64_t content_elements(const Model& model, const Footprint& footprint,
                                            std::int64_t block);

}  // namespace harpe::verifier
