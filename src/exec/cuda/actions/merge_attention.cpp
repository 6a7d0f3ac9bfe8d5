#include "exec/cuda/actions/merge_attention.h"

#include <algorithm>
#include <vector>

#include "exec/cuda/actions/attention_positions.h"

namespace harpe::cuda {
namespace {

bool same(const HeadTensor& one, const HeadTensor& other) {
  return one.address == other.address && one.strides.batch == other.strides.batch &&
         one.strides.row == other.strides.row && one.strides.head == other.strides.head;
}

bool alike(const AttentionSpec& one, const AttentionSpec& other) {
  return one.batch == other.batch && one.heads == other.heads && one.kv_heads == other.kv_heads &&
         one.scale == other.scale && one.query_dim == other.query_dim &&
         one.value_dim == other.value_dim && one.element == other.element;
}

bool alike(const AttentionPanelSpec& one, const AttentionPanelSpec& other) {
  return one.rows == other.rows && same(one.queries, other.queries) &&
         same(one.output, other.output) && same(one.lse, other.lse);
}

bool alike(const AttentionChunkSpec& one, const AttentionChunkSpec& other) {
  return one.rows == other.rows && same(one.keys, other.keys) && same(one.values, other.values);
}

// The place of one like it in `all`, which may become its.
template <class Spec>
std::size_t place_in(std::vector<Spec>& all, const Spec& one) {
  const auto found = std::ranges::find_if(all, [&](const Spec& each) { return alike(each, one); });
  if (found != all.end()) return static_cast<std::size_t>(found - all.begin());
  all.push_back(one);
  return all.size() - 1;
}

class AttentionMerger {
 public:
  std::optional<AttentionSpec> merge(std::span<const ArrivingLaunch> launches) {
    for (const ArrivingLaunch& launch : launches) {
      const auto* spec = std::get_if<AttentionSpec>(&launch.spec);
      if (spec == nullptr || !add(*spec, launch.ready)) return std::nullopt;
    }
    if (!place_by_rules(merged_, meetings_)) return std::nullopt;
    std::ranges::stable_sort(merged_.panels, {}, &AttentionPanelSpec::position);
    return std::move(merged_);
  }

 private:
  [[nodiscard]] bool add(const AttentionSpec& spec, const device::FlagWait& ready) {
    if (merged_.panels.empty()) {
      merged_ = spec;
      merged_.panels.clear();
      merged_.chunks.clear();
      merged_.rule = std::nullopt;
      merged_.parts = 1;
    }
    if (!alike(spec, merged_) || (spec.causal && !spec.rule)) return false;
    const std::size_t panels = merged_.panels.size();
    const Meeting meeting{.panel = place_in(merged_.panels, spec.panels.front()),
                          .chunk = place_in(merged_.chunks, spec.chunks.front()),
                          .rule = spec.rule};
    const bool begins = merged_.panels.size() > panels;
    if (spec.carried != (begins ? merged_.carried : true) || meet(meeting)) return false;
    meetings_.push_back(meeting);
    device::FlagWait& known = merged_.chunks[meeting.chunk].ready;
    if (known.flag != nullptr && known.flag != ready.flag) return false;
    known = ready;
    return true;
  }

  // Whether there is a launch of the same panel and chunk.
  [[nodiscard]] bool meet(const Meeting& meeting) const {
    return std::ranges::any_of(meetings_, [&](const Meeting& other) {
      return other.panel == meeting.panel && other.chunk == meeting.chunk;
    });
  }

  AttentionSpec merged_;
  std::vector<Meeting> meetings_;
};

}  // namespace

std::optional<AttentionSpec> merge_attention(std::span<const ArrivingLaunch> launches) {
  return AttentionMerger().merge(launches);
}

}  // namespace harpe::cuda
