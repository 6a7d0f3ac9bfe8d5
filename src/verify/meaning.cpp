#include "verify/meaning.h"

namespace harpe::verifier {
namespace {

// The contributions to each block of a target: linked lists in one vector.
class Contributions {
 public:
  explicit Contributions(std::int64_t blocks) : first_(static_cast<std::size_t>(blocks), kNone) {}

  void add(std::int64_t block, TermId term) {
    std::size_t& first = first_[static_cast<std::size_t>(block)];
    nodes_.push_back({.term = term, .next = first});
    first = nodes_.size() - 1;
  }
  [[nodiscard]] std::size_t blocks() const { return first_.size(); }
  void list(std::size_t block, std::vector<TermId>& terms) const {
    terms.clear();
    for (std::size_t at = first_[block]; at != kNone; at = nodes_[at].next) {
      terms.push_back(nodes_[at].term);
    }
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  struct Node {
    TermId term;
    std::size_t next;
  };
  std::vector<std::size_t> first_;
  std::vector<Node> nodes_;
};

}  // namespace

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
    if (buffer.role != Role::In) continue;
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
  std::vector<Contributions> made;  // per target
  for (const AccessModel& target : model.targets) {
    const Radix& radix = model_.buffers[static_cast<std::size_t>(target.buffer)].radix;
    made.emplace_back(radix.blocks);
  }
  auto& contributions = contributions_.emplace_back(nest.space.blocks, kNoTerm);
  const std::vector<Range> box = whole_box(nest.space);
  std::vector<std::int32_t> point(box.size(), 0);
  std::vector<std::int32_t> words;
  std::int64_t visited = 0;
  do {
    if ((++visited & 4095) == 0) HP_REQUIRE_OK(limit.check(kProof));
    if (model_.is_empty(nest, point) || model_.is_masked(model, point)) continue;
    const std::int64_t iteration = product(nest.space.strides, point);
    words = {statement, static_cast<std::int32_t>(iteration)};
    // check_program ensures that every operand has a value before it is read. If the program gives
    // none (a Store that a mask hides), the term contains kNoTerm and no plan can match it.
    const MissingOperand missing =
        read_operands(model_, model, point, words,
                      [&](int buffer, std::int64_t block) { return value(buffer, block); });
    if (missing.buffer >= 0) words.push_back(kNoTerm);
    // The words name the iteration, which occurs once. An execution passes this id as the likely
    // one.
    const TermId term = terms.add_likely(TermKind::Contribution, words);
    contributions[static_cast<std::size_t>(iteration)] = term;
    for (std::size_t t = 0; t < model.targets.size(); ++t) {
      const AccessModel& target = model.targets[t];
      const std::int64_t base = product(target.strides, point);
      for (const std::int64_t offset : target.offsets) {
        made[t].add(base + offset, term);
      }
    }
  } while (next_point(box, point));
  auto& states = states_.emplace_back();
  for (std::size_t t = 0; t < model.targets.size(); ++t) {
    const auto buffer = static_cast<std::size_t>(model.targets[t].buffer);
    states.emplace_back();
    for (std::size_t block = 0; block < made[t].blocks(); ++block) {
      made[t].list(block, words);
      states[t].push_back(terms.state(words));
      if (model_.buffers[buffer].is_empty(static_cast<std::int64_t>(block))) continue;
      values_[buffer][block] = value_term(terms, statement, static_cast<std::int32_t>(t),
                                          static_cast<std::int32_t>(block), states[t].back());
    }
  }
  return Ok{};
}

}  // namespace harpe::verifier
