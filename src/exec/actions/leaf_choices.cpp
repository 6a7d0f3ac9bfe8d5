#include "exec/actions/leaf.h"
#include "support/check.h"

namespace harpe::actions {
namespace {

// Participants of the leaf.
constexpr std::size_t kLogits = 0;
constexpr std::size_t kIndex = 1;
constexpr std::size_t kWeights = 2;

constexpr std::string_view kIndexTypes = "i32 or i64";
constexpr std::string_view kFloatTypes = "a floating type";

}  // namespace

Checked<Action> call_topk(const LeafSite& site, const LeafCall& call) {
  const Cell& cell = call.cell;
  for (std::size_t i = 0; i < cell.views.size(); ++i) {
    const DType found = cell.views[i].dtype;
    const bool index = i == kIndex;
    HP_REQUIRE_OK(require_type(site, cell, i, index ? is_index(found) : is_floating(found),
                               index ? kIndexTypes : kFloatTypes));
  }
  const std::vector<std::size_t> in = site.axes_of(kLogits);
  const std::vector<std::size_t> out = site.axes_of(kIndex);
  HP_CHECK(in.size() == 2 && out.size() == 2 && in[0] == out[0], "dimensions of `topk`");
  for (const std::size_t axis : {in[1], out[1]}) HP_REQUIRE_OK(check_whole(site, cell, axis));
  ChooseExperts choose{.tokens = cell.span[in[0]].size(),
                       .experts = cell.span[in[1]].size(),
                       .choices = cell.span[out[1]].size(),
                       .logits = cell.views[kLogits].data,
                       .logit_dtype = cell.views[kLogits].dtype,
                       .logit_stride = byte_stride(cell, kLogits, in[0]),
                       .expert_stride = byte_stride(cell, kLogits, in[1]),
                       .index = cell.views[kIndex].data,
                       .index_dtype = cell.views[kIndex].dtype,
                       .index_stride = byte_stride(cell, kIndex, out[0]),
                       .index_choice_stride = byte_stride(cell, kIndex, out[1]),
                       .weights = cell.views[kWeights].data,
                       .weight_dtype = cell.views[kWeights].dtype,
                       .weight_stride = byte_stride(cell, kWeights, out[0]),
                       .weight_choice_stride = byte_stride(cell, kWeights, out[1])};
  return Action{choose};
}

Checked<Action> call_limit_choices(const LeafSite& site, const LeafCall& call) {
  constexpr std::size_t kWanted = 0;
  constexpr std::size_t kKept = 1;
  const Cell& cell = call.cell;
  for (const std::size_t i : {kWanted, kKept}) {
    HP_REQUIRE_OK(require_type(site, cell, i, is_index(cell.views[i].dtype), kIndexTypes));
  }
  const std::vector<std::size_t> all = site.axes_of(kWanted);
  const std::vector<std::size_t> own = site.axes_of(kKept);
  HP_CHECK(all.size() == 2 && own.size() == 2, "dimensions of `limit_choices`");
  for (const std::size_t axis : all) HP_REQUIRE_OK(check_whole(site, cell, axis));
  const auto experts = static_cast<std::int64_t>(attribute_of(site.stmt, "experts", 0));
  return Action{
      LimitChoices{.wanted = cell.views[kWanted].data,
                   .wanted_stride = byte_stride(cell, kWanted, all[0]),
                   .wanted_choice_stride = byte_stride(cell, kWanted, all[1]),
                   .kept = cell.views[kKept].data,
                   .kept_stride = byte_stride(cell, kKept, own[0]),
                   .kept_choice_stride = byte_stride(cell, kKept, own[1]),
                   .first = cell.span[own[0]].begin,
                   .tokens = cell.span[own[0]].size(),
                   .choices = cell.span[own[1]].size(),
                   .experts = experts,
                   .capacity = static_cast<std::int64_t>(attribute_of(site.stmt, "capacity", 0)),
                   .wanted_dtype = cell.views[kWanted].dtype,
                   .kept_dtype = cell.views[kKept].dtype,
                   .taken = std::make_unique<std::int64_t[]>(static_cast<std::size_t>(experts))}};
}

}  // namespace harpe::actions
