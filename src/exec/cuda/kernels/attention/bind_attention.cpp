#include "exec/cuda/kernels/attention/bind_attention.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "exec/cuda/kernels/attention/attention_arrays.h"
#include "exec/cuda/kernels/attention/attention_positions.h"
#include "exec/cuda/kernels/attention/bind_operands.h"
#include "exec/cuda/kernels/attention/bind_results.h"
#include "exec/cuda/kernels/attention/decode.h"

namespace harpe::cuda {
namespace {

bool have_one_shape(const AttentionSpec& one, const AttentionSpec& other) {
  return one.batch == other.batch && one.heads == other.heads && one.kv_heads == other.kv_heads &&
         one.scale == other.scale && one.query_dim == other.query_dim &&
         one.value_dim == other.value_dim && one.element == other.element &&
         one.engine == other.engine;
}

std::span<const launch::Place> first_of(const std::vector<launch::Place>& places) {
  return std::span(places).first(std::min<std::size_t>(places.size(), 1));
}

class AttentionBinder {
 public:
  explicit AttentionBinder(const KernelBinding& binding)
      : binding_(binding), kernel_(binding.kernel()) {}

  Checked<AttentionSpec> bind() {
    if (!kernel_.fused_copies.empty()) return binding_.refuse("attention makes no copies");
    if (has_results(kernel_)) return bind_results(binding_);
    HP_REQUIRE_OK(find_members());
    begin(members_.front().spec());
    for (std::size_t i = 0; i < kernel_.arrivals.size(); ++i) HP_REQUIRE_OK(add_chunk(i));
    for (std::size_t i = 0; i < kernel_.panels.size(); ++i) HP_REQUIRE_OK(add_panel(i));
    HP_REQUIRE_OK(place_positions());
    HP_REQUIRE_OK(cut_keys());
    const auto waits = [](const launch::Arrival& arrival) { return arrival.when.has_value(); };
    if (std::ranges::any_of(kernel_.arrivals, waits)) spec_.wait = binding_.wait_context();
    return std::move(spec_);
  }

 private:
  // A task's attention as part of the kernel.
  struct Member {
    const LaunchAlone* alone = nullptr;
    Meeting meeting;

    [[nodiscard]] const AttentionSpec& spec() const { return alone->spec->get<AttentionSpec>(); }
  };

  // Most members follow their predecessor: the next chunk, for the same panel or the next. So the
  // search starts there.
  Checked<Ok> find_members() {
    Meeting next;
    for (LaunchAlone& alone : binding_.alone()) {
      const auto* const spec = alone.spec->find<AttentionSpec>();
      if (alone.is_bound || spec == nullptr) continue;
      const auto panel = find_around(kernel_.panels, next.panel, [&](const launch::Panel& each) {
        return are_elements(first_of(alone.panel().reads), first_of(each.reads)) &&
               are_elements(first_of(alone.panel().stores), first_of(each.stores));
      });
      const auto chunk =
          find_around(kernel_.arrivals, next.chunk, [&](const launch::Arrival& each) {
            return are_elements(alone.arrival().reads, each.reads);
          });
      if (!panel || !chunk) continue;
      Meeting meeting{.panel = *panel, .chunk = *chunk, .rule = spec->rule};
      if (meeting.rule) meeting.rule->lead += alone.lead;
      next = {.panel = *panel, .chunk = *chunk + 1, .rule = {}};
      if (find_meeting(meeting.panel, meeting.chunk) != nullptr) {
        return binding_.refuse("two of them meet the same queries and keys");
      }
      if (!members_.empty() && !have_one_shape(*spec, members_.front().spec())) {
        return binding_.refuse("their heads, types or scales differ");
      }
      alone.is_bound = true;
      members_.push_back({.alone = &alone, .meeting = meeting});
    }
    if (members_.empty()) return binding_.refuse("none of them meets what it meets");
    return Ok{};
  }

  [[nodiscard]] const Member* find_meeting(std::size_t panel, std::size_t chunk) const {
    const auto found = std::ranges::find_if(members_, [&](const Member& member) {
      return member.meeting.panel == panel && member.meeting.chunk == chunk;
    });
    return found == members_.end() ? nullptr : &*found;
  }

  // The first member of a panel, or of a chunk.
  [[nodiscard]] const Member* find_first(std::size_t Meeting::* of, std::size_t index) const {
    const auto found = std::ranges::find_if(
        members_, [&](const Member& member) { return member.meeting.*of == index; });
    return found == members_.end() ? nullptr : &*found;
  }

  void begin(const AttentionSpec& alone) {
    spec_ = alone;
    spec_.panels.clear();
    spec_.chunks.clear();
    spec_.to_state = kernel_.panels.front().dtype == DType::F32;
    if (members_.size() > 1) spec_.rule = std::nullopt;
    spec_.keys_are_fixed = are_keys_fixed(binding_);
  }

  Checked<Ok> add_chunk(std::size_t index) {
    const Member* const first = find_first(&Meeting::chunk, index);
    if (first == nullptr) return binding_.refuse("none of them reads an arrival of its");
    HP_TRY(spec_.chunks.emplace_back(),
           place_chunk(binding_, *first->alone, kernel_.arrivals[index]));
    return Ok{};
  }

  Checked<Ok> add_panel(std::size_t index) {
    const Member* const first = find_first(&Meeting::panel, index);
    if (first == nullptr) return binding_.refuse("none of them makes a panel of its");
    const LaunchAlone& alone = *first->alone;
    const launch::Panel& panel = kernel_.panels[index];
    AttentionPanelSpec& bound = spec_.panels.emplace_back(first->spec().panels.front());
    const AttentionPanelSpec from = bound;
    const auto read = [&](const StridedArray& array, const char* what, std::size_t which) {
      return binding_.place(alone, {array, what, which}, alone.panel().reads, panel.reads);
    };
    const auto store = [&](const StridedArray& array, const char* what, std::size_t which) {
      return binding_.place(alone, {array, what, which}, alone.panel().stores, panel.stores);
    };
    HP_TRY(const StridedArray queries, read(array_queries(spec_, from), "queries", 0));
    HP_TRY(const StridedArray output, store(array_output(spec_, from), "the output", 0));
    bound.queries = tensor_at(queries);
    bound.output = tensor_at(output);
    if (from.lse.address != 0) {
      HP_TRY(const StridedArray lse, store(array_lse(spec_, from), "lse", 1));
      bound.lse = tensor_at(lse);
    }
    HP_REQUIRE_OK(place_tables(binding_, alone, panel.reads, spec_));
    if (!spec_.carried) return Ok{};
    HP_TRY(const StridedArray carried, read(array_carried(spec_, from), "the state", 1));
    HP_TRY(const StridedArray carried_lse,
           read(array_carried_lse(spec_, from), "the state's lse", 2));
    bound.carried_output = tensor_at(carried);
    const bool stays = carried_lse.address == bound.lse.address;
    bound.carried_lse = stays ? 0 : carried_lse.address;
    if (array_lse(spec_, bound).extents == carried_lse.extents) return Ok{};
    return binding_.refuse("the state's lse has other strides than what is stored");
  }

  // With several tasks: finds positions from each task's lead of queries over keys.
  Checked<Ok> place_positions() {
    std::vector<Meeting> meetings;
    for (const Member& member : members_) meetings.push_back(member.meeting);
    if (members_.size() > 1 && !place_by_rules(spec_, meetings)) {
      return binding_.refuse("their masks are not one mask");
    }
    for (std::size_t i = 0; i < spec_.panels.size(); ++i) {
      std::vector<std::int32_t> seen;
      for (std::size_t j = 0; j < spec_.chunks.size(); ++j) {
        const bool is_seen = !is_hidden(spec_, spec_.panels[i], spec_.chunks[j]);
        if (is_seen) seen.push_back(static_cast<std::int32_t>(j));
      }
      if (seen != kernel_.panels[i].meets) {
        return binding_.refuse("by their masks a panel meets other arrivals");
      }
    }
    return Ok{};
  }

  // Cuts the keys as the variant says; without a variant, as the task alone. Only the kernel for
  // many queries can join several tasks.
  Checked<Ok> cut_keys() {
    if (members_.size() > 1) {
      spec_.parts = 1;
      spec_.shares = 0;
      spec_ = with_groups_as_rows(std::move(spec_));
    }
    if (kernel_.variant.empty()) return Ok{};
    const std::string& text = kernel_.variant;
    if (can_decode(spec_)) {
      if (const auto shares = parse_shares(text, cut_heads(spec_))) {
        spec_.shares = *shares;
        spec_.parts = 1;
        return Ok{};
      }
    }
    const std::size_t number = text.find_last_of(' ') + 1;
    std::from_chars(text.data() + number, text.data() + text.size(), spec_.parts);
    if (spec_.shares == 0 && print_parts(spec_.parts) == text) return Ok{};
    return binding_.refuse("it has no variant \"" + text + "\"");
  }

  const KernelBinding& binding_;
  const launch::Kernel& kernel_;
  std::vector<Member> members_;  // in the order of the tasks
  AttentionSpec spec_;
};

}  // namespace

std::string print_parts(int parts) { return "keys cut " + std::to_string(parts); }

Checked<AttentionSpec> bind_attention(const KernelBinding& binding) {
  return AttentionBinder(binding).bind();
}

}  // namespace harpe::cuda
