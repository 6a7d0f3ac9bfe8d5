#include "verify/clocks.h"

#include <algorithm>

namespace harpe::verifier {

Row::Row(std::int32_t strands)
    : pages_((static_cast<std::size_t>(strands) + kStrands - 1) / kStrands) {}

std::int32_t Row::at(std::int32_t strand) const {
  const auto s = static_cast<std::size_t>(strand);
  const auto& page = pages_[s / kStrands];
  return page ? (*page)[s % kStrands] : -1;
}

void Row::raise(std::int32_t strand, std::int32_t position) {
  if (at(strand) >= position) return;
  const auto s = static_cast<std::size_t>(strand);
  auto& page = pages_[s / kStrands];
  const auto raised = std::make_shared<Page>();
  if (page) {
    *raised = *page;
  } else {
    raised->fill(-1);
  }
  (*raised)[s % kStrands] = position;
  page = raised;
}

void Row::join(const Row& other) {
  for (std::size_t i = 0; i < pages_.size(); ++i) {
    auto& own = pages_[i];
    const auto& theirs = other.pages_[i];
    if (own == theirs || !theirs) continue;
    if (!own) {
      own = theirs;
      continue;
    }
    Page joined;
    std::int32_t unlike_own = 0;
    std::int32_t unlike_theirs = 0;
    for (std::size_t s = 0; s < kStrands; ++s) {
      joined[s] = std::max((*own)[s], (*theirs)[s]);
      unlike_own |= joined[s] ^ (*own)[s];
      unlike_theirs |= joined[s] ^ (*theirs)[s];
    }
    if (unlike_theirs == 0) {
      own = theirs;
    } else if (unlike_own != 0) {
      own = std::make_shared<const Page>(joined);
    }
  }
}

Clocks::Clocks(const Order& order)
    : order_(order), none_(order.strands), current_(none_), joined_(none_) {
  std::int32_t units = 0;
  for (const std::int32_t unit : order.sequence) units = std::max(units, unit + 1);
  rows_.resize(static_cast<std::size_t>(units));
  waiting_.assign(static_cast<std::size_t>(units), 0);
  for (const std::int32_t unit : order.sequence) {
    std::int32_t& edges = waiting_[static_cast<std::size_t>(unit)];
    if (!order.is_group(unit)) edges = static_cast<std::int32_t>(order.after(unit).size());
    for (const std::int32_t member : order.members(unit)) {
      if (order.is_group(unit)) edges += static_cast<std::int32_t>(order.after(member).size());
    }
  }
}

void Clocks::note(std::int32_t task) {
  current_.raise(order_.strand_of(task), order_.strand_position_of(task));
}

void Clocks::join(std::int32_t node, Covers covers) {
  current_.join(rows_[static_cast<std::size_t>(order_.unit_of(node))]);
  if (!order_.is_task(node) || covers == Covers::Nothing) return;
  note(node);
  if (covers == Covers::Completion || covers == Covers::Put) return;
  for (std::int32_t at = order_.position_of(node); at-- > 0;) {
    const std::int32_t earlier = order_.task_at(order_.lane_of(node), at);
    if (order_.tells_of(covers, node, earlier)) note(earlier);
  }
}

const Row& Clocks::start(std::int32_t node) {
  current_ = none_;
  const std::span<const std::int32_t> edges = order_.before(node);
  const std::span<const Covers> covers = order_.covers(node);
  for (std::size_t edge = 0; edge < edges.size(); ++edge) {
    join(edges[edge], covers[edge]);
    const auto unit = static_cast<std::size_t>(order_.unit_of(edges[edge]));
    if (--waiting_[unit] == 0) rows_[unit] = {};
  }
  joined_.join(current_);
  return current_;
}

void Clocks::finish(std::int32_t unit) {
  const auto at = static_cast<std::size_t>(unit);
  if (waiting_[at] > 0) rows_[at] = joined_;
  joined_ = none_;
}

}  // namespace harpe::verifier
