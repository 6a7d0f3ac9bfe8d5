#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/blocks.h"
#include "plan/launch_plan.h"
#include "plan/plan.h"
#include "support/lexer.h"

namespace harpe::launch {

// Parses allocations and places in a launch plan's text. Plan and blocks must outlive it.
class PlaceParser {
 public:
  PlaceParser(const Plan& plan, const Blocks& blocks);

  // Adds an allocation after the plan's; its id is the next one.
  void add_box(const Alloc& box);

  // `C.home`, on `rank`, or `C.home@1`. If `rank` is not valid, the text must state a rank.
  // Errors: T001, V103, V104.
  [[nodiscard]] Checked<AllocId> parse_alloc(Cursor& line, RankId rank) const;
  // `C.home@1[0:512, *]`, one span for each axis and opaque dimension. Errors: parse_alloc's, V108.
  [[nodiscard]] Checked<Place> parse_place(Cursor& line, RankId rank) const;
  // Appends places up to the next keyword, which has no `.`, `[` or `@` after it.
  [[nodiscard]] Checked<Ok> parse_places(Cursor& line, RankId rank,
                                         std::vector<Place>& places) const;

 private:
  // The axis or dimension of a span.
  struct Extent {
    std::string name;
    std::int64_t length = 0;
  };
  struct Named {
    std::string name;
    std::size_t buffer = 0;
  };

  const Blocks& blocks_;
  [[nodiscard]] static Checked<Interval> parse_span(Cursor& line, const std::string& alloc,
                                                    const Extent* extent);

  std::vector<std::vector<Extent>> extents_;  // as Blocks::buffers
  std::map<std::pair<RankId, std::string>, AllocId> names_;
  std::vector<Named> allocs_;  // by id
};

}  // namespace harpe::launch
