#include "verify/meaning.h"

namespace harpe::verifier {

Checked<Meaning> Meaning::make(const Model& model, Terms& terms, const TimeLimit& limit) {
  for (const NestModel& nest : model.nests) {
    if (nest.space.blocks <= kMaxBlocks) continue;
    return make_diag(DiagCode::V203, {{"what", "the iteration space of nest `" + nest.name + "`"},
                                      {"limit", kMaxBlocks}});
  }
  Meaning meaning(model, terms);
  for (std::size_t id = 0; id < model.statements.size(); ++id) {
    HP_REQUIRE_OK(meaning.run(static_cast<int>(id), terms, limit));
  }
  return meaning;
}

Meaning::Meaning(const Model& model, Terms& terms) : model_(model) {
  for (std::size_t id = 0; id < model.buffers.size(); ++id) {
    const BufferModel& buffer = model.buffers[id];
    values_.emplace_back(static_cast<std::size_t>(buffer.radix.blocks), kNoTerm);
    if (buffer.role != Role::In && buffer.role != Role::InOut) continue;
    for (std::int64_t block = 0; block < buffer.radix.blocks; ++block) {
      if (buffer.is_empty(block)) continue;
      values_[id][static_cast<std::size_t>(block)] =
          input_term(terms, static_cast<std::int32_t>(id), static_cast<std::int32_t>(block));
    }
  }
}

Checked<Ok> Meaning::run(int statement, Terms& terms, const TimeLimit& limit) {
  const StatementModel& model = model_.statements[static_cast<std::size_t>(statement)];
  const NestModel& nest = model_.nests[static_cast<std::size_t>(model.nest)];
  std::vector<std::vector<std::vector<TermId>>> made;  // per target, per block
  for (const AccessModel& target : model.targets) {
    const Radix& radix = model_.buffers[static_cast<std::size_t>(target.buffer)].radix;
    made.emplace_back(static_cast<std::size_t>(radix.blocks));
  }
  const std::vector<Range> box = whole_box(nest.space);
  std::vector<std::int32_t> point(box.size(), 0);
  std::vector<std::int32_t> words;
  std::int64_t visited = 0;
  do {
    if ((++visited & 4095) == 0) HP_REQUIRE_OK(limit.check(kProof));
    if (model_.is_empty(nest, point) || model_.is_masked(model, point)) continue;
    words = {statement, static_cast<std::int32_t>(product(nest.space.strides, point))};
    // check_program: every operand has a value before it is read. Where the program gives none
    // (a Store that a mask hides), the term says so and no plan can match it.
    const MissingOperand missing =
        read_operands(model_, model, point, words,
                      [&](int buffer, std::int64_t block) { return value(buffer, block); });
    if (missing.buffer >= 0) words.push_back(kNoTerm);
    const TermId term = terms.intern(TermKind::Contribution, words);
    for (std::size_t t = 0; t < model.targets.size(); ++t) {
      const AccessModel& target = model.targets[t];
      const std::int64_t base = product(target.strides, point);
      for (const std::int64_t offset : target.offsets) {
        made[t][static_cast<std::size_t>(base + offset)].push_back(term);
      }
    }
  } while (next_point(box, point));
  auto& states = states_.emplace_back();
  for (std::size_t t = 0; t < model.targets.size(); ++t) {
    const auto buffer = static_cast<std::size_t>(model.targets[t].buffer);
    states.emplace_back();
    for (std::size_t block = 0; block < made[t].size(); ++block) {
      states[t].push_back(terms.state(made[t][block]));
      if (model_.buffers[buffer].is_empty(static_cast<std::int64_t>(block))) continue;
      values_[buffer][block] = value_term(terms, statement, static_cast<std::int32_t>(t),
                                          static_cast<std::int32_t>(block), states[t].back());
    }
  }
  return Ok{};
}

}  // namespace harpe::verifier
