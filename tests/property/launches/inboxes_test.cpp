#include "exec/cuda/group/inboxes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "exec/actions/view.h"
#include "plan/launch_signals.h"
#include "tests/property/launches/described.h"

namespace harpe::test {
namespace inboxes_test {

std::byte* at(std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); }

// Addresses are never dereferenced. Pages may lie before the arenas in memory, as on rank 0.
TEST(Inboxes, lie_apart_from_arenas_and_from_each_other) {
  const Described d =
      describe("gemm_ar", {"m=8", "n=8192", "k=8192"}, "tp=2", "one_shot", {.takes_turns = true});
  const std::vector<AllocId> ids = launch::inboxes_of(d.launches);
  ASSERT_FALSE(ids.empty());
  const cuda::Inboxes inboxes(d.plan, d.launches);
  const std::array pages = {at(0x10000), at(0x90000000)};
  actions::Bases bases{.arenas = {at(0x20000000), at(0x40000000)}};
  bases.apart = inboxes.places(d.plan, pages);
  EXPECT_EQ(bases.apart.size(), ids.size());
  std::array<std::int64_t, 2> used{};
  for (std::size_t i = 0; i < d.plan.allocs.size(); ++i) {
    const Alloc& alloc = d.plan.allocs[i];
    const std::size_t rank = alloc.rank.index();
    const bool is_inbox =
        std::ranges::find(ids, AllocId(static_cast<std::int64_t>(i))) != ids.end();
    std::byte* const place = bases.address(alloc);
    if (!is_inbox) {
      EXPECT_EQ(place, bases.arenas[rank] + alloc.offset) << alloc.name;
      continue;
    }
    EXPECT_GE(place, pages[rank] + used[rank]) << alloc.name << " lies behind the one before";
    used[rank] = place + alloc.bytes - pages[rank];
    EXPECT_LE(used[rank], inboxes.bytes());
  }
}

TEST(Inboxes, are_none_where_no_signal_is_in_data) {
  const Described d =
      describe("gemm_ar", {"m=1024", "n=8192", "k=8192"}, "tp=2", "push", {.takes_turns = true});
  EXPECT_EQ(cuda::Inboxes(d.plan, d.launches).bytes(), 0);
}

}  // namespace inboxes_test
}  // namespace harpe::test
