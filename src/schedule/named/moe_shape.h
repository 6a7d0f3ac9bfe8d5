#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/program.h"
#include "schedule/named/attention_shape.h"
#include "support/diag.h"

namespace harpe {

// The structure of a program that sends rows through one route and back, found by position: `slots
// = gather_rows(x, i)`, nests over slots, `y sum= combine_rows(slots, i, w)`, and nests of tokens
// only.
struct MoeShape {
  std::string route;
  SizedAxis tokens, experts;
  std::string slots;
  BufferNames by_token;   // of the whole program: buffers along tokens
  BufferNames by_expert;  // buffers along experts but not along tokens
  std::vector<std::string> token_nests;
  // Buffers that one of these nests reads for all tokens: `j[T] = limit_choices(i[T=Ta])`, Ta
  // whole.
  std::vector<std::pair<std::string, std::string>> whole_reads;  // (nest, buffer)
  std::string dispatch;
  std::vector<std::string> expert_nests;  // between dispatch and combine
  std::string combine;
  std::string sources, index;         // what dispatch reads
  std::string gathered;               // what it writes
  std::string made, weights, result;  // what combine reads besides the index, and what it writes
};

// Errors: S603.
[[nodiscard]] Checked<MoeShape> read_moe(const Program& program);

}  // namespace harpe
