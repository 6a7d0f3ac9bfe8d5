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

// Allocations and places of a launch plan's text, by their names. Plan and blocks must outlive it.
class PlaceParser {
 public:
  PlaceParser(const Plan& plan, const Blocks& blocks);

  // One more, behind the plan's; its id is the next one.
  void add_box(const Alloc& box);

  // `C.home`, of the rank, or `C.home@1`; where the rank is not valid it must be written.
  // Errors: T001, V103, V104.
  [[nodiscard]] Checked<AllocId> parse_alloc(Cursor& line, RankId rank) const;
  // `C.home@1[0:512, *]`, one span for each axis and opaque dimension. Errors: parse_alloc's, V108.
  [[nodiscard]] Checked<Place> parse_place(Cursor& line, RankId rank) const;
  // Appends places until something else comes: a keyword has no `.`, `[` or `@` behind it.
  [[nodiscard]] Checked<Ok> parse_places(Cursor& line, RankId rank,
                                         std::vector<Place>& places) const;

 private:
  // What a span is along.
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
