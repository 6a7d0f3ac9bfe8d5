#include "lower/transport_rules.h"

#include <string>

#include "ir/text.h"
#include "schedule/transports.h"

namespace harpe {

Checked<Ok> check_transport(const Move& move) {
  const Via via = move.transport();
  const std::string name = "`via " + std::string(print(via)) + "`";
  const auto refuse = [&](const std::string& problem) {
    return make_diag(DiagCode::F245, {{"move", print(move.kind)},
                                      {"buffer", move.buffer},
                                      {"axes", print_mesh_ref(move.over)},
                                      {"problem", problem}});
  };
  const bool moves = move.how != How::Inline;
  if (moves && is_source_initiated(via) && move.initiator() == Initiator::Dst) {
    return refuse("is started by its destination, and " + name + " only by its source");
  }
  if (move.signal && !can_signal(via, *move.signal)) {
    return refuse("signals by `" + std::string(print(*move.signal)) + "`, and " + name + " by " +
                  describe_signals(via));
  }
  if (move.fence && !takes_fence(via)) {
    return refuse("has a fence, and no signal overtakes what goes " + name);
  }
  if (!moves && move.via && !is_inline_capable(via)) {
    return refuse("is inline, and a leaf reaches no other rank " + name);
  }
  return Ok{};
}

}  // namespace harpe
