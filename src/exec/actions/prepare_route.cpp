#include <algorithm>

#include "exec/actions/prepare.h"
#include "ir/slabs.h"
#include "leaves/leaf.h"
#include "support/check.h"

namespace harpe::actions {
namespace {

// One operand or target of a routed leaf: its patches, and which of its axes belong to the route
// (major, minor: tokens and choices, or experts and slots). Its other axes are features.
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

// Byte offset in a patch of `position` along an axis.
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
        gathers_(is_leaf(stmt_.leaf, Leaf::GatherRows)) {}

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
    HP_REQUIRE_OK(check_strides());
    for (const Slab& slab : slabs_of(setting_.blocks, route_)) {
      HP_REQUIRE_OK(check_room(slab));
      for (const Group& group : groups_of(slab)) HP_REQUIRE_OK(add(slab, group));
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

  // Rows move whole: slots and tokens must hold all features, index and weights all choices.
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

  // Features must have the same strides in all patches of a side: one walk serves all of its rows.
  [[nodiscard]] Checked<Ok> check_strides() const {
    for (const Side* const side : {&tokens_, &slots_}) {
      for (const Side::Source& source : side->sources) {
        for (const std::size_t axis : side->features()) {
          if (source.patch.strides[axis] == side->sources.front().patch.strides[axis]) continue;
          return make_diag(
              DiagCode::X004,
              {{"leaf", stmt_.leaf}, {"nest", nest_.name}, {"buffer", side->table->name}});
        }
      }
    }
    return Ok{};
  }

  // Every token of a slab may choose the same expert.
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

  // The scope of one action. If a transfer is cut by a digit (`when`), it serves the experts, slots
  // or tokens with one value of that digit, so each value has an action of its own.
  struct Group {
    Interval experts;
    std::optional<std::size_t> part;     // of the slab's slots; none: all
    std::optional<std::int32_t> tokens;  // value of the digit that cuts tokens; none: all
    bool first = true;                   // of the groups with the same tokens
  };

  [[nodiscard]] bool is_cut_by(const std::string& axis) const { return cutting_digit(axis) >= 0; }

  // The digit of the axis that cuts transfers read here, or -1 (one stage cuts by one digit, F224).
  [[nodiscard]] int cutting_digit(const std::string& axis) const {
    for (const Side* const side : {&tokens_, &slots_, &index_, &weights_}) {
      for (const Side::Source& source : side->sources) {
        if (!source.when) continue;
        const int digit = setting_.blocks.find_digit(source.when->digit);
        const auto owner = static_cast<std::size_t>(digit);
        if (setting_.blocks.digits()[owner].axis == setting_.blocks.find_axis(axis)) return digit;
      }
    }
    return -1;
  }

  [[nodiscard]] std::vector<Group> groups_of(const Slab& slab) const {
    const int axis = setting_.blocks.find_axis(route_.slots[0]);
    const std::int64_t experts = setting_.blocks.axes()[static_cast<std::size_t>(axis)].size;
    const std::int64_t step = is_cut_by(route_.slots[0]) ? 1 : experts;
    const std::size_t parts = is_cut_by(route_.slots[1]) ? slab.parts.size() : 1;
    const int digit = cutting_digit(route_.choices[0]);
    const std::int32_t values =
        digit < 0 ? 1 : setting_.blocks.digits()[static_cast<std::size_t>(digit)].extent;
    std::vector<Group> groups;
    for (std::int32_t value = 0; value < values; ++value) {
      for (std::int64_t expert = 0; expert < experts; expert += step) {
        for (std::size_t part = 0; part < parts; ++part) {
          Group group{.experts = {.begin = expert, .end = expert + step}, .part = {}, .tokens = {}};
          if (is_cut_by(route_.slots[1])) group.part = part;
          if (digit >= 0) group.tokens = value;
          group.first = expert == 0 && part == 0;
          groups.push_back(group);
        }
      }
    }
    return groups;
  }

  [[nodiscard]] std::int32_t value_of(int digit, const std::string& axis,
                                      std::int64_t position) const {
    return digit_at(setting_.blocks, setting_.blocks.find_axis(axis), digit, position);
  }

  [[nodiscard]] bool serves(const Side::Source& source, const Slab& slab,
                            const Group& group) const {
    if (!source.when) return true;
    const int digit = setting_.blocks.find_digit(source.when->digit);
    const int axis = setting_.blocks.digits()[static_cast<std::size_t>(digit)].axis;
    const auto along = [&](const std::string& name) {
      return axis == setting_.blocks.find_axis(name);
    };
    std::int32_t value = source.when->value;
    if (along(route_.slots[0])) value = value_of(digit, route_.slots[0], group.experts.begin);
    if (along(route_.slots[1])) {
      value = value_of(digit, route_.slots[1], slab.parts[*group.part].slots.begin);
    }
    if (along(route_.choices[0])) value = *group.tokens;
    return value == source.when->value;
  }

  // The patch that holds `position` along the major axis for this group.
  [[nodiscard]] const Patch* patch_at(const Side& side, std::int64_t position, const Slab& slab,
                                      const Group& group) const {
    for (const Side::Source& source : side.sources) {
      const Interval& span = source.patch.span[side.major];
      if (span.begin <= position && position < span.end && serves(source, slab, group)) {
        return &source.patch;
      }
    }
    return nullptr;
  }

  // Whether the group covers the token: all of the slab, or those with its value of the cutting
  // digit.
  [[nodiscard]] bool is_asked_for(std::int64_t token, const Group& group) const {
    return !group.tokens ||
           value_of(cutting_digit(route_.choices[0]), route_.choices[0], token) == *group.tokens;
  }

  Checked<Ok> add(const Slab& slab, const Group& group) {
    SlabWalk walk;
    walk.first_expert = group.experts.begin;
    walk.index_dtype = index_.table->dtype;
    const bool any = add_slots(slab, group, walk);
    if (gathers_ && !any) return Ok{};
    HP_TRY(const bool mine, add_tokens(slab, group, walk));
    if (!mine) return Ok{};
    walk.counts = reserve(group.experts.size());
    if (gathers_) {
      work_.actions.emplace_back(GatherRows{.walk = std::move(walk),
                                            .features = features(slots_, tokens_),
                                            .pads = route_.policy == "pad"});
    } else {
      work_.actions.emplace_back(
          CombineRows{.walk = std::move(walk), .features = features(tokens_, slots_)});
    }
    return Ok{};
  }

  // Adds the slab's slots that this task holds for the group, per expert.
  bool add_slots(const Slab& slab, const Group& group, SlabWalk& walk) const {
    bool any = false;
    walk.slots.resize(static_cast<std::size_t>(group.experts.size()));
    for (std::size_t i = 0; i < slab.parts.size(); ++i) {
      if (group.part && *group.part != i) continue;
      const SlabPart& part = slab.parts[i];
      for (std::int64_t e = group.experts.begin; e < group.experts.end; ++e) {
        const Patch* const patch = slots_at(slab, group, e, part.slots);
        if (patch == nullptr) continue;
        any = true;
        walk.slots[static_cast<std::size_t>(e - group.experts.begin)].push_back(
            {.before = part.before,
             .slots = part.slots.size(),
             .data = patch->data + bytes_to(*patch, slots_.major, e) +
                     bytes_to(*patch, *slots_.minor, part.slots.begin),
             .stride = bytes_along(*patch, *slots_.minor),
             .dtype = patch->dtype,
             .used = patch->occupancy + e * part.blocks + part.block});
      }
    }
    return any;
  }

  [[nodiscard]] const Patch* slots_at(const Slab& slab, const Group& group, std::int64_t expert,
                                      const Interval& slots) const {
    for (const Side::Source& source : slots_.sources) {
      const Interval& owned = source.patch.span[slots_.major];
      const Interval& span = source.patch.span[*slots_.minor];
      const bool holds = owned.begin <= expert && expert < owned.end && span.begin <= slots.begin &&
                         slots.end <= span.end;
      if (holds && serves(source, slab, group)) return &source.patch;
    }
    return nullptr;
  }

  // Adds all tokens of the slab in order. False if this task holds none of them.
  Checked<bool> add_tokens(const Slab& slab, const Group& group, SlabWalk& walk) const {
    bool mine = false;
    for (const Interval& tokens : slab.tokens) {
      for (std::int64_t at = tokens.begin; at < tokens.end;) {
        const Patch* const index = patch_at(index_, at, slab, group);
        const Patch* rows = patch_at(tokens_, at, slab, group);
        if (index == nullptr || (gathers_ && rows == nullptr)) {
          if (!has_tokens_of(slab)) return false;
          return make_diag(DiagCode::X012,
                           {{"leaf", stmt_.leaf},
                            {"nest", nest_.name},
                            {"buffer", (index == nullptr ? index_ : tokens_).table->name},
                            {"token", at}});
        }
        const std::int64_t end = end_of_run(at, tokens.end);
        if (!gathers_ && !is_asked_for(at, group)) rows = nullptr;
        HP_TRY(TokenRun run, token_run(at, end, *index, rows, slab, group));
        walk.choices = index->span[*index_.minor].size();
        walk.runs.push_back(run);
        mine = mine || rows != nullptr;
        at = end;
      }
    }
    return mine;
  }

  // The first position behind `begin` where a patch of token data ends or begins.
  [[nodiscard]] std::int64_t end_of_run(std::int64_t begin, std::int64_t end) const {
    const auto cut_at = [&](std::int64_t border) {
      if (border > begin) end = std::min(end, border);
    };
    for (const Side* const side : {&tokens_, &weights_, &index_}) {
      for (const Side::Source& source : side->sources) {
        cut_at(source.patch.span[side->major].begin);
        cut_at(source.patch.span[side->major].end);
      }
    }
    if (is_cut_by(route_.choices[0])) {
      const int axis = setting_.blocks.find_axis(route_.choices[0]);
      for (const std::int64_t start :
           setting_.blocks.axes()[static_cast<std::size_t>(axis)].starts) {
        cut_at(start);
      }
    }
    return end;
  }

  [[nodiscard]] bool has_tokens_of(const Slab& slab) const {
    return gathers_ || std::ranges::any_of(tokens_.sources, [&](const Side::Source& source) {
             return std::ranges::any_of(slab.tokens, [&](const Interval& tokens) {
               const Interval& span = source.patch.span[tokens_.major];
               return span.begin < tokens.end && tokens.begin < span.end;
             });
           });
  }

  // `rows` null: tokens that are only counted.
  Checked<TokenRun> token_run(std::int64_t begin, std::int64_t end, const Patch& index,
                              const Patch* rows, const Slab& slab, const Group& group) const {
    TokenRun run;
    run.tokens = end - begin;
    run.index = index.data + bytes_to(index, index_.major, begin);
    run.index_stride = bytes_along(index, index_.major);
    run.choice_stride = bytes_along(index, *index_.minor);
    if (rows == nullptr) return run;
    run.rows = rows->data + bytes_to(*rows, tokens_.major, begin);
    run.row_stride = bytes_along(*rows, tokens_.major);
    run.row_dtype = rows->dtype;
    if (gathers_) return run;
    const Patch* const weights = patch_at(weights_, begin, slab, group);
    HP_CHECK(weights != nullptr, "a compute task names the blocks it reads");
    run.weights = weights->data + bytes_to(*weights, weights_.major, begin);
    run.weight_stride = bytes_along(*weights, weights_.major);
    run.weight_choice_stride = bytes_along(*weights, *weights_.minor);
    run.weight_dtype = weights->dtype;
    run.accumulate = rows->mode == WriteMode::Add || !group.first;
    return run;
  }

  // The walk over one row of the result and of its source.
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
      // Without a source (no expert of the task has a slot here) nothing is read.
      strides[1].push_back(from.sources.empty() ? target.strides[axis]
                                                : from.sources.front().patch.strides[at]);
    }
    return Rows(lengths, strides);
  }

  std::int32_t* reserve(std::int64_t counts) {
    const auto bytes = counts * static_cast<std::int64_t>(sizeof(std::int32_t));
    return reinterpret_cast<std::int32_t*>(setting_.scratch.reserve(bytes));
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

}  // namespace harpe::actions
