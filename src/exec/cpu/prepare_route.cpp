#include <algorithm>
#include <map>

#include "exec/cpu/prepare.h"
#include "ir/leaf_contract.h"
#include "ir/slabs.h"
#include "support/check.h"

namespace harpe::cpu {
namespace {

// One operand or target of a routed leaf: where its pieces lie, and which of its axes are the
// route's (major, minor: tokens and choices, or experts and slots); the others are features.
struct Side {
  const BufferTable* table = nullptr;
  std::vector<AxisKey> keys;
  std::size_t major = 0;
  std::optional<std::size_t> minor;
  struct Source {
    Patch patch;
    std::optional<RouteChoice> when;
  };
  std::vector<Source> sources;

  [[nodiscard]] std::vector<std::size_t> features() const {
    std::vector<std::size_t> axes;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (i != major && i != minor) axes.push_back(i);
    }
    return axes;
  }
};

std::int64_t bytes_along(const Patch& patch, std::size_t axis) {
  return patch.strides[axis] * size_in_bytes(patch.dtype);
}

// `position` of an axis in a patch, in bytes from its first element.
std::int64_t bytes_to(const Patch& patch, std::size_t axis, std::int64_t position) {
  return (position - patch.span[axis].begin) * bytes_along(patch, axis);
}

class RouteBuilder {
 public:
  RouteBuilder(const Setting& setting, const Task& task)
      : setting_(setting),
        task_(task),
        nest_(*find_nest(setting.plan.program, task.nest)),
        stmt_(statement_of(setting.plan, task)),
        route_(*find_route_of(setting.plan.program, nest_)),
        gathers_(stmt_.leaf == "gather_rows") {}

  Checked<TaskWork> build() {
    const Side index = side(stmt_.operands[1], task_.reads, route_.choices[0], route_.choices[1]);
    if (gathers_) {
      tokens_ = side(stmt_.operands[0], task_.reads, route_.choices[0], "");
      slots_ = side(stmt_.targets[0], task_.writes, route_.slots[0], route_.slots[1]);
    } else {
      slots_ = side(stmt_.operands[0], task_.reads, route_.slots[0], route_.slots[1]);
      weights_ = side(stmt_.operands[2], task_.reads, route_.choices[0], route_.choices[1]);
      tokens_ = side(stmt_.targets[0], task_.writes, route_.choices[0], "");
    }
    index_ = index;
    HP_REQUIRE_OK(check_features());
    for (const Slab& slab : slabs_of(setting_.blocks, route_)) {
      HP_REQUIRE_OK(check_room(slab));
      for (const Interval& experts : expert_groups()) HP_REQUIRE_OK(add(slab, experts));
    }
    return std::move(work_);
  }

 private:
  [[nodiscard]] Side side(const Access& access, const std::vector<Ref>& refs,
                          const std::string& major, const std::string& minor) const {
    const int buffer = setting_.blocks.find_buffer(access.buffer);
    HP_CHECK(buffer >= 0, "buffer `" + access.buffer + "`");
    Side out;
    out.table = &setting_.blocks.buffers()[static_cast<std::size_t>(buffer)];
    out.keys = keys_of(*out.table);
    const auto place = [&](const std::string& axis) {
      const auto at = std::ranges::find(out.keys, setting_.blocks.find_axis(axis));
      HP_CHECK(at != out.keys.end(), "axis `" + axis + "` of `" + access.buffer + "`");
      return static_cast<std::size_t>(at - out.keys.begin());
    };
    out.major = place(major);
    if (!minor.empty()) out.minor = place(minor);
    for (const Ref& ref : refs) {
      if (setting_.plan.allocs[ref.alloc.index()].buffer != access.buffer) continue;
      for (Patch& patch : patches_of(setting_, ref)) {
        out.sources.push_back({.patch = std::move(patch), .when = ref.when});
      }
    }
    return out;
  }

  // Rows are moved whole: slots and tokens hold all features, index and weights all choices.
  [[nodiscard]] Checked<Ok> check_features() const {
    for (const Side* part : {&tokens_, &slots_, &index_, &weights_}) {
      for (const Side::Source& source : part->sources) {
        for (std::size_t axis = 0; axis < part->keys.size(); ++axis) {
          const bool choices = part == &index_ || part == &weights_;
          if (axis == part->major || (!choices && axis == part->minor)) continue;
          const std::int64_t whole = length_of(setting_.blocks, *part->table, part->keys[axis]);
          const std::int64_t found = source.patch.span[axis].size();
          if (found == whole) continue;
          const AxisKey key = part->keys[axis];
          return make_diag(
              DiagCode::X003,
              {{"leaf", stmt_.leaf},
               {"nest", nest_.name},
               {"axis", key < 0 ? std::string("features")
                                : setting_.blocks.axes()[static_cast<std::size_t>(key)].name},
               {"found", found},
               {"whole", whole}});
        }
      }
    }
    return Ok{};
  }

  // An expert may be chosen by every token of a slab.
  [[nodiscard]] Checked<Ok> check_room(const Slab& slab) const {
    std::int64_t tokens = 0;
    std::int64_t slots = 0;
    for (const Interval& run : slab.tokens) tokens += run.size();
    for (const SlabPart& part : slab.parts) slots += part.slots.size();
    if (slots >= tokens) return Ok{};
    return make_diag(
        DiagCode::X014,
        {{"route", route_.name}, {"axis", route_.slots[1]}, {"slots", slots}, {"tokens", tokens}});
  }

  // All experts at once, or one by one where each has transfers of its own.
  [[nodiscard]] std::vector<Interval> expert_groups() const {
    const int axis = setting_.blocks.find_axis(route_.slots[0]);
    const std::int64_t experts = setting_.blocks.axes()[static_cast<std::size_t>(axis)].size;
    const bool cut = std::ranges::any_of(
        tokens_.sources, [](const Side::Source& source) { return source.when.has_value(); });
    if (!cut) return {{.begin = 0, .end = experts}};
    std::vector<Interval> groups;
    for (std::int64_t e = 0; e < experts; ++e) groups.push_back({.begin = e, .end = e + 1});
    return groups;
  }

  // A transfer cut by a digit of the experts serves those with its value.
  [[nodiscard]] bool serves(const Side::Source& source, std::int64_t expert) const {
    if (!source.when) return true;
    const int digit = setting_.blocks.find_digit(source.when->digit);
    const int axis = setting_.blocks.find_axis(route_.slots[0]);
    if (setting_.blocks.digits()[static_cast<std::size_t>(digit)].axis != axis) return true;
    return digit_at(setting_.blocks, axis, digit, expert) == source.when->value;
  }

  // The source that holds [from, …) of an axis, for this group of experts.
  [[nodiscard]] const Patch* patch_at(const Side& part, std::size_t axis, std::int64_t position,
                                      std::int64_t expert) const {
    for (const Side::Source& source : part.sources) {
      const Interval& span = source.patch.span[axis];
      if (span.begin <= position && position < span.end && serves(source, expert)) {
        return &source.patch;
      }
    }
    return nullptr;
  }

  Checked<Ok> add(const Slab& slab, const Interval& experts) {
    SlabWalk walk;
    walk.first_expert = experts.begin;
    walk.index_dtype = index_.table->dtype;
    const bool any = add_slots(slab, experts, walk);
    if (gathers_ && !any) return Ok{};
    HP_TRY(const bool mine, add_tokens(slab, experts.begin, walk));
    if (!mine) return Ok{};
    walk.counts = reserve(experts.size());
    const Patch& row = tokens_.sources.front().patch;
    if (gathers_) {
      work_.actions.emplace_back(GatherRows{.walk = std::move(walk),
                                            .features = features(slots_, tokens_),
                                            .to = slots_.sources.front().patch.dtype,
                                            .from = row.dtype});
    } else {
      work_.actions.emplace_back(CombineRows{
          .walk = std::move(walk),
          .features = features(tokens_, slots_),
          .to = row.dtype,
          .from = slots_.sources.empty() ? row.dtype : slots_.sources.front().patch.dtype,
          .weight = weights_.table->dtype});
    }
    return Ok{};
  }

  // The slots of the slab that this task has, of each expert.
  bool add_slots(const Slab& slab, const Interval& experts, SlabWalk& walk) const {
    bool any = false;
    walk.slots.resize(static_cast<std::size_t>(experts.size()));
    for (const Side::Source& source : slots_.sources) {
      const Patch& patch = source.patch;
      const Interval& owned = patch.span[slots_.major];
      for (const SlabPart& part : slab.parts) {
        const Interval& span = patch.span[*slots_.minor];
        if (span.begin > part.slots.begin || span.end < part.slots.end) continue;
        for (std::int64_t e = std::max(owned.begin, experts.begin);
             e < std::min(owned.end, experts.end); ++e) {
          any = true;
          walk.slots[static_cast<std::size_t>(e - experts.begin)].push_back(
              {.before = part.before,
               .slots = part.slots.size(),
               .data = patch.data + bytes_to(patch, slots_.major, e) +
                       bytes_to(patch, *slots_.minor, part.slots.begin),
               .stride = bytes_along(patch, *slots_.minor),
               .used = patch.occupancy + e * part.blocks + part.block});
        }
      }
    }
    return any;
  }

  // All tokens of the slab in order. False when none of them is this task's.
  Checked<bool> add_tokens(const Slab& slab, std::int64_t expert, SlabWalk& walk) const {
    bool mine = false;
    for (const Interval& tokens : slab.tokens) {
      for (std::int64_t at = tokens.begin; at < tokens.end;) {
        const Patch* const index = patch_at(index_, index_.major, at, expert);
        const Patch* const rows = patch_at(tokens_, tokens_.major, at, expert);
        if (index == nullptr || (gathers_ && rows == nullptr)) {
          if (!has_tokens_of(slab)) return false;
          return make_diag(DiagCode::X012,
                           {{"leaf", stmt_.leaf},
                            {"nest", nest_.name},
                            {"buffer", (index == nullptr ? index_ : tokens_).table->name},
                            {"token", at}});
        }
        std::int64_t end = std::min(tokens.end, index->span[index_.major].end);
        for (const Side* const part : {&tokens_, &weights_}) {
          for (const Side::Source& source : part->sources) {
            for (const std::int64_t border :
                 {source.patch.span[part->major].begin, source.patch.span[part->major].end}) {
              if (border > at) end = std::min(end, border);
            }
          }
        }
        walk.runs.push_back(token_run(at, end, *index, rows, expert, walk));
        mine = mine || rows != nullptr;
        at = end;
      }
    }
    return mine;
  }

  [[nodiscard]] bool has_tokens_of(const Slab& slab) const {
    return gathers_ || std::ranges::any_of(tokens_.sources, [&](const Side::Source& source) {
             return std::ranges::any_of(slab.tokens, [&](const Interval& tokens) {
               const Interval& span = source.patch.span[tokens_.major];
               return span.begin < tokens.end && tokens.begin < span.end;
             });
           });
  }

  TokenRun token_run(std::int64_t begin, std::int64_t end, const Patch& index, const Patch* rows,
                     std::int64_t expert, SlabWalk& walk) const {
    walk.choices = index.span[*index_.minor].size();
    TokenRun run;
    run.tokens = end - begin;
    run.index = index.data + bytes_to(index, index_.major, begin);
    run.index_stride = bytes_along(index, index_.major);
    run.choice_stride = bytes_along(index, *index_.minor);
    if (rows == nullptr) return run;
    std::byte* const data = rows->data + bytes_to(*rows, tokens_.major, begin);
    if (gathers_) {
      run.rows = data;
      run.row_stride = bytes_along(*rows, tokens_.major);
      return run;
    }
    const Patch* const weights = patch_at(weights_, weights_.major, begin, expert);
    HP_CHECK(weights != nullptr, "a compute task names the blocks it reads");
    run.weights = weights->data + bytes_to(*weights, weights_.major, begin);
    run.weight_stride = bytes_along(*weights, weights_.major);
    run.weight_choice_stride = bytes_along(*weights, *weights_.minor);
    run.sums = data;
    run.sum_stride = bytes_along(*rows, tokens_.major);
    run.accumulate = rows->mode == WriteMode::Add;
    return run;
  }

  // The walk over one row, of the result and of what it is made of.
  [[nodiscard]] Rows features(const Side& to, const Side& from) const {
    std::vector<std::int64_t> lengths;
    std::vector<std::int64_t> strides[2];
    const Patch& target = to.sources.front().patch;
    for (const std::size_t axis : to.features()) {
      lengths.push_back(target.span[axis].size());
      strides[0].push_back(target.strides[axis]);
      const auto same = std::ranges::find(from.keys, to.keys[axis]);
      HP_CHECK(same != from.keys.end(), "features of `" + from.table->name + "`");
      const auto at = static_cast<std::size_t>(same - from.keys.begin());
      // Nothing to read where no expert of the task has a slot here.
      strides[1].push_back(from.sources.empty() ? target.strides[axis]
                                                : from.sources.front().patch.strides[at]);
    }
    return Rows(lengths, strides);
  }

  std::int32_t* reserve(std::int64_t counts) {
    work_.scratch.push_back(
        std::make_unique<std::byte[]>(static_cast<std::size_t>(counts) * sizeof(std::int32_t)));
    return reinterpret_cast<std::int32_t*>(work_.scratch.back().get());
  }

  const Setting& setting_;
  const Task& task_;
  const Nest& nest_;
  const Stmt& stmt_;
  const Route& route_;
  bool gathers_;
  Side tokens_, slots_, index_, weights_;
  TaskWork work_;
};

}  // namespace

Checked<TaskWork> prepare_routed(const Setting& setting, const Task& task) {
  return RouteBuilder(setting, task).build();
}

}  // namespace harpe::cpu
