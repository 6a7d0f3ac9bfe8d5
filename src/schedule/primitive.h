#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "schedule/primitives/balance.h"
#include "schedule/primitives/bind.h"
#include "schedule/primitives/budget.h"
#include "schedule/primitives/chunk.h"
#include "schedule/primitives/compress.h"
#include "schedule/primitives/drain.h"
#include "schedule/primitives/fuse.h"
#include "schedule/primitives/join.h"
#include "schedule/primitives/parallelize.h"
#include "schedule/primitives/partial.h"
#include "schedule/primitives/patch.h"
#include "schedule/primitives/pipeline.h"
#include "schedule/primitives/refine.h"
#include "schedule/primitives/reorder.h"
#include "schedule/primitives/replicate.h"
#include "schedule/primitives/reverse.h"
#include "schedule/primitives/route_layout.h"
#include "schedule/primitives/serialize.h"
#include "schedule/primitives/shard.h"
#include "schedule/primitives/shift.h"
#include "schedule/primitives/signal.h"
#include "schedule/primitives/stage.h"
#include "schedule/primitives/tile.h"
#include "schedule/script.h"

namespace harpe {

namespace detail {
template <class Head, class... Types>
struct VariantWithout {
  using type = std::variant<Types...>;
};
}  // namespace detail

// Any primitive with typed arguments.
using Primitive = detail::VariantWithout<void
#define HP_PRIMITIVE(TYPE, SUMMARY) , TYPE
#include "schedule/primitives.def"
#undef HP_PRIMITIVE
                                         >::type;

struct PrimitiveInfo {
  std::string_view name;
  std::string_view summary;
  std::string usage;  // "tile(axis, factors) -> digits"
};

[[nodiscard]] std::vector<PrimitiveInfo> all_primitives();

// Converts between text form and typed form by each primitive's fields. read_step(to_step(p)) == p.
// Errors: S001 (unknown primitive), S002-S007 (arguments).
[[nodiscard]] Checked<Primitive> read_step(const Step& step);
[[nodiscard]] Step to_step(const Primitive& primitive);

// check, then apply. Keeps: the given state if it refuses. Errors: those of the primitive.
[[nodiscard]] Checked<ScheduleState> run(ScheduleState state, const Primitive& primitive);

}  // namespace harpe
