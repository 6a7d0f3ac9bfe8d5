#pragma once

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "lower/draft.h"
#include "plan/slots.h"

namespace harpe {

// The transfers of one move at one step among the ranks of one group: a square [from][to], null
// where there is no transfer.
struct Exchange {
  std::vector<RankId> members;  // ascending coordinate along the move's axes
  std::vector<std::vector<const DraftTask*>> tasks;
};

// The index after the last transfer of the same instance as task `begin`.
[[nodiscard]] std::size_t instance_end(const Draft& draft, std::size_t begin);

// Whether blocks fill one contiguous range of their slot. Caches answers, because many ranks ask
// the same question.
class RunCheck {
 public:
  explicit RunCheck(const Draft& draft) : draft_(draft) {}
  [[nodiscard]] bool is_run(const DraftRef& ref);

 private:
  struct Question {
    int buffer;
    std::vector<bool> holds;
    std::vector<BlockId> blocks;
  };
  struct Less {
    using is_transparent = void;  // look-up without a copy of the blocks
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return parts_of(a) < parts_of(b);
    }
  };
  using Parts = std::tuple<int, const std::vector<bool>&, const std::vector<BlockId>&>;
  static Parts parts_of(const Question& asked) { return {asked.buffer, asked.holds, asked.blocks}; }
  static const Parts& parts_of(const Parts& asked) { return asked; }

  struct Shape {
    Region region;
    SlotShape shape;
  };

  const Draft& draft_;
  std::map<Question, bool, Less> known_;
  std::map<std::pair<int, std::vector<bool>>, Shape> shapes_;  // the last one per buffer and holds
};

// The exchanges among tasks [begin, end) of one instance; none if some pair of ranks has more than
// one transfer.
[[nodiscard]] std::vector<Exchange> exchanges_of(const Draft& draft, std::size_t begin,
                                                 std::size_t end);

// Every member sends every other one contiguous part of equal size (and all or none also
// themselves).
[[nodiscard]] bool is_regular(const Draft& draft, RunCheck& runs, const Exchange& exchange);

// Every member sends the same blocks to all members.
[[nodiscard]] bool is_gather(const Exchange& exchange);

}  // namespace harpe
