#include "verify/coverage.h"

#include <algorithm>
#include <iterator>

#include "verify/words.h"

namespace harpe::verifier {
namespace {

constexpr std::size_t kNamed = 3;  // iterations that a finding names; it counts the rest

class OutputCheck {
 public:
  OutputCheck(const Plan& plan, const Model& model, const Resolved& resolved,
              const Meaning& meaning, Execution& execution, Terms& terms)
      : model_(model),
        resolved_(resolved),
        meaning_(meaning),
        execution_(execution),
        terms_(terms),
        words_(plan, model),
        homes_(static_cast<std::size_t>(model.ranks) * model.buffers.size(), -1) {
    for (std::size_t id = 0; id < plan.allocs.size(); ++id) {
      if (plan.allocs[id].level != Level::Home) continue;
      const auto alloc = static_cast<std::int32_t>(id);
      home(plan.allocs[id].rank.index(),
           static_cast<std::size_t>(resolved.footprint(alloc).buffer)) = alloc;
    }
  }

  Checked<std::int64_t> run() {
    std::int64_t checked = 0;
    for (std::size_t id = 0; id < model_.buffers.size(); ++id) {
      const BufferModel& buffer = model_.buffers[id];
      if (buffer.role != Role::Out) continue;
      for (std::int64_t rank = 0; rank < model_.ranks; ++rank) {
        const bool joint = !buffer.partial.empty();
        if (joint && model_.coordinate(RankId(rank), buffer.partial) != 0) continue;
        const std::vector<std::int64_t> ranks =
            joint ? sharers(buffer, rank) : std::vector<std::int64_t>{rank};
        HP_TRY(const std::int64_t blocks, check_home(static_cast<int>(id), ranks));
        checked += blocks;
      }
    }
    return checked;
  }

 private:
  [[nodiscard]] std::int32_t& home(std::size_t rank, std::size_t buffer) {
    return homes_[rank * model_.buffers.size() + buffer];
  }

  // The ranks whose partial homes together hold the blocks kept at `rank`.
  [[nodiscard]] std::vector<std::int64_t> sharers(const BufferModel& buffer,
                                                  std::int64_t rank) const {
    std::vector<int> others;
    for (int axis = 0; axis < static_cast<int>(model_.mesh.size()); ++axis) {
      if (std::ranges::count(buffer.partial, axis) == 0) others.push_back(axis);
    }
    std::vector<std::int64_t> ranks;
    for (std::int64_t other = 0; other < model_.ranks; ++other) {
      const bool same =
          model_.coordinate(RankId(other), others) == model_.coordinate(RankId(rank), others);
      if (same) ranks.push_back(other);
    }
    return ranks;
  }

  Checked<std::int64_t> check_home(int buffer, const std::vector<std::int64_t>& ranks) {
    const BufferModel& model = model_.buffers[static_cast<std::size_t>(buffer)];
    std::vector<Range> box;
    for (std::size_t i = 0; i < model.home.size(); ++i) {
      const auto at =
          static_cast<std::int32_t>(model_.coordinate(RankId(ranks.front()), model.home[i]));
      const bool placed = !model.home[i].empty();
      box.push_back({.lo = placed ? at : 0, .hi = placed ? at + 1 : model.radix.extents[i]});
    }
    std::vector<std::int32_t> point;
    for (const Range& range : box) point.push_back(range.lo);
    std::int64_t checked = 0;
    do {
      const std::int64_t block = product(model.radix.strides, point);
      if (model.is_empty(block)) continue;
      const TermId got = ranks.size() == 1 && model.partial.empty()
                             ? held(buffer, ranks.front(), block, point)
                             : held_together(buffer, ranks, block, point);
      if (!model.partial.empty()) HP_REQUIRE_OK(check_partners(buffer, ranks, block, point));
      const TermId want = meaning_.value(buffer, block);
      if (want == kNoTerm || got != want) {
        return describe(buffer, ranks.front(), block, want, got);
      }
      ++checked;
    } while (next_point(box, point));
    return checked;
  }

  [[nodiscard]] TermId held(int buffer, std::int64_t rank, std::int64_t block,
                            std::span<const std::int32_t> point) {
    const std::int32_t alloc =
        home(static_cast<std::size_t>(rank), static_cast<std::size_t>(buffer));
    if (alloc < 0) return kNoTerm;
    const std::int64_t cell = product(resolved_.footprint(alloc).cell_strides, point);
    return execution_.held(alloc, cell, static_cast<std::int32_t>(block));
  }

  // The value that the partial states of several ranks have together.
  TermId held_together(int buffer, const std::vector<std::int64_t>& ranks, std::int64_t block,
                       std::span<const std::int32_t> point) {
    const TermId want = meaning_.value(buffer, block);
    if (want == kNoTerm || terms_.kind(want) != TermKind::Value) return kNoTerm;
    const std::int32_t statement = terms_.words(want)[0];
    const std::int32_t target = terms_.words(want)[1];
    TermId state = terms_.empty_state();
    for (const std::int64_t rank : ranks) {
      TermId part = held(buffer, rank, block, point);
      if (part == kNoTerm) return kNoTerm;
      if (terms_.kind(part) == TermKind::Value) {
        const bool same = terms_.words(part)[0] == statement && terms_.words(part)[1] == target;
        if (!same) return part;
        part = terms_.words(part)[3];
      }
      if (terms_.kind(part) != TermKind::State) return part;
      state = terms_.combine(state, part);
    }
    return value_term(terms_, statement, target, static_cast<std::int32_t>(block), state);
  }

  // The contributions in the home's part of a block; kNoTerm if the home holds no such part.
  [[nodiscard]] TermId part_state(int buffer, std::int64_t rank, std::int64_t block,
                                  std::span<const std::int32_t> point) {
    const TermId part = held(buffer, rank, block, point);
    if (part == kNoTerm) return kNoTerm;
    if (terms_.kind(part) == TermKind::State) return part;
    return terms_.kind(part) == TermKind::Value ? terms_.words(part)[3] : kNoTerm;
  }

  // Checks that for a tied state every rank's parts of o and of l contain the same contributions.
  Checked<Ok> check_partners(int buffer, const std::vector<std::int64_t>& ranks, std::int64_t block,
                             std::span<const std::int32_t> point) {
    const TermId want = meaning_.value(buffer, block);
    if (want == kNoTerm || terms_.kind(want) != TermKind::Value) return Ok{};
    const StatementModel& statement =
        model_.statements[static_cast<std::size_t>(terms_.words(want)[0])];
    if (!statement.tied || terms_.words(want)[1] != 0) return Ok{};
    const int weight = statement.targets[1].buffer;
    const std::int64_t partner = statement.partner[static_cast<std::size_t>(block)];
    const std::vector<std::int32_t> at =
        point_of(model_.buffers[static_cast<std::size_t>(weight)].radix, partner);
    for (const std::int64_t rank : ranks) {
      const TermId state = part_state(buffer, rank, block, point);
      const TermId beside = part_state(weight, rank, partner, at);
      if (state == beside && state != kNoTerm) continue;
      return make_diag(DiagCode::V550, {{"rank", rank},
                                        {"block", words_.block(buffer, block)},
                                        {"state_size", size_of_state(state)},
                                        {"weight", words_.block(weight, partner)},
                                        {"weight_size", size_of_state(beside)}});
    }
    return Ok{};
  }

  [[nodiscard]] std::string size_of_state(TermId state) const {
    if (state == kNoTerm) return "nothing";
    return count_of(static_cast<std::int64_t>(terms_.words(state).size()), "contribution");
  }

  [[nodiscard]] std::string iteration_of(TermId contribution) const {
    const std::int32_t statement = terms_.words(contribution)[0];
    return words_.iteration(model_.statements[static_cast<std::size_t>(statement)].nest,
                            terms_.words(contribution)[1]);
  }

  [[nodiscard]] std::string list_of(const std::vector<TermId>& contributions) const {
    std::string text;
    for (std::size_t i = 0; i < std::min(kNamed, contributions.size()); ++i) {
      text += (i == 0 ? "" : ", ") + iteration_of(contributions[i]);
    }
    const std::size_t rest = contributions.size() - std::min(kNamed, contributions.size());
    return rest == 0 ? text : text + " and " + std::to_string(rest) + " more";
  }

  [[nodiscard]] std::string value_text(TermId term) const {
    if (term == kNoTerm) return "nothing";
    const std::span<const std::int32_t> words = terms_.words(term);
    if (terms_.kind(term) == TermKind::Part) {
      return "what " + words_.cut({.digit = words[1], .value = words[2]}) + " need of " +
             value_text(words[0]);
    }
    if (terms_.kind(term) == TermKind::Input) return "input " + words_.block(words[0], words[1]);
    if (terms_.kind(term) != TermKind::Value) return "a partial state";
    const StatementModel& statement = model_.statements[static_cast<std::size_t>(words[0])];
    const int buffer = statement.targets[static_cast<std::size_t>(words[1])].buffer;
    return words_.block(buffer, words[2]) + " as " + words_.statement(words[0]) + " makes it of " +
           count_of(static_cast<std::int64_t>(terms_.words(words[3]).size()), "contribution");
  }

  [[nodiscard]] Diag describe(int buffer, std::int64_t rank, std::int64_t block, TermId want,
                              TermId got) const {
    const std::string name = words_.block(buffer, block);
    if (got == kNoTerm) {
      const bool empty = want != kNoTerm && terms_.kind(want) == TermKind::Value &&
                         terms_.words(want)[3] == terms_.empty_state();
      return make_diag(
          DiagCode::V523,
          {{"block", name},
           {"rank", rank},
           {"why", empty ? "; no iteration contributes to it, so it needs an init task" : ""}});
    }
    const bool comparable =
        want != kNoTerm && terms_.kind(want) == TermKind::Value &&
        terms_.kind(got) == TermKind::Value &&
        std::ranges::equal(terms_.words(want).first(3), terms_.words(got).first(3));
    if (!comparable) {
      return make_diag(DiagCode::V524, {{"block", name},
                                        {"rank", rank},
                                        {"found", value_text(got)},
                                        {"wanted", value_text(want)}});
    }
    const std::span<const std::int32_t> wanted = terms_.words(terms_.words(want)[3]);
    const std::span<const std::int32_t> found = terms_.words(terms_.words(got)[3]);
    std::vector<TermId> missing;
    std::vector<TermId> extra;
    std::ranges::set_difference(wanted, found, std::back_inserter(missing));
    std::ranges::set_difference(found, wanted, std::back_inserter(extra));
    for (const TermId a : missing) {
      for (const TermId b : extra) {
        if (iteration_of(a) == iteration_of(b)) return other_operand(name, rank, a, b);
      }
    }
    if (!missing.empty()) {
      return make_diag(
          DiagCode::V520,
          {{"block", name},
           {"rank", rank},
           {"missing", missing.size()},
           {"total", count_of(static_cast<std::int64_t>(wanted.size()), "contribution")},
           {"which", list_of(missing)}});
    }
    return make_diag(DiagCode::V521,
                     {{"block", name},
                      {"rank", rank},
                      {"extra", count_of(static_cast<std::int64_t>(extra.size()), "contribution")},
                      {"which", list_of(extra)}});
  }

  // The finding for an iteration that ran with a wrong operand.
  [[nodiscard]] Diag other_operand(const std::string& name, std::int64_t rank, TermId want,
                                   TermId got) const {
    const std::span<const std::int32_t> wanted = terms_.words(want);
    const std::span<const std::int32_t> found = terms_.words(got);
    std::size_t at = 0;
    while (at < std::min(wanted.size(), found.size()) && wanted[at] == found[at]) ++at;
    const bool both = at < std::min(wanted.size(), found.size());
    return make_diag(DiagCode::V522, {{"block", name},
                                      {"rank", rank},
                                      {"iteration", iteration_of(want)},
                                      {"found", both ? value_text(found[at]) : "other operands"},
                                      {"wanted", both ? value_text(wanted[at]) : "its own"}});
  }

  const Model& model_;
  const Resolved& resolved_;
  const Meaning& meaning_;
  Execution& execution_;
  Terms& terms_;
  Words words_;
  std::vector<std::int32_t> homes_;  // per rank and buffer: its home, or -1
};

}  // namespace

Checked<std::int64_t> check_outputs(const Plan& plan, const Model& model, const Resolved& resolved,
                                    const Meaning& meaning, Execution& execution, Terms& terms) {
  return OutputCheck(plan, model, resolved, meaning, execution, terms).run();
}

}  // namespace harpe::verifier
