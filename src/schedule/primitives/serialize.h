#pragma once

#include <string>

#include "schedule/fields.h"
#include "schedule/state.h"

namespace harpe {

// serialize(N, d):  leaf { d in n }  ->  for d in n { leaf }, innermost
// Requires: a nest (S011); a digit that it may bind (S013, S022-S024); digits of one seq axis in
//           their order, most significant outermost (S211).
// Keeps:    the set of points.
struct Serialize {
  static constexpr std::string_view kName = "serialize";
  std::string nest;
  std::string digit;
  static constexpr auto fields() {
    return std::tuple{positional("nest", &Serialize::nest), positional("digit", &Serialize::digit)};
  }
  friend bool operator==(const Serialize&, const Serialize&) = default;
};

struct SerializeFacts {
  std::size_t nest = 0;
  std::string digit;
};

[[nodiscard]] Checked<SerializeFacts> check(const ScheduleState& state, const Serialize& step);
[[nodiscard]] ScheduleState apply(ScheduleState state, const SerializeFacts& facts);

}  // namespace harpe
