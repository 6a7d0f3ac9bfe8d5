#include "verify/clocks.h"

#include <algorithm>
#include <utility>

#include "support/multiversion.h"

namespace harpe::verifier {
namespace {

// Whether the maximum of two rows of positions differs from each of them.
struct Unlike {
  bool own;
  bool theirs;
};

HP_CLONES Unlike compare(const std::int32_t* own, const std::int32_t* theirs, std::size_t count) {
  std::uint32_t below = 0;
  std::uint32_t above = 0;
  for (std::size_t s = 0; s < count; ++s) {
    below |= static_cast<std::uint32_t>(own[s] < theirs[s]);
    above |= static_cast<std::uint32_t>(own[s] > theirs[s]);
  }
  return {.own = below != 0, .theirs = above != 0};
}

HP_CLONES void later_of(const std::int32_t* own, const std::int32_t* theirs, std::int32_t* later,
                        std::size_t count) {
  for (std::size_t s = 0; s < count; ++s) later[s] = std::max(own[s], theirs[s]);
}

}  // namespace

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
  if (page.use_count() != 1) {
    auto own = std::make_shared_for_overwrite<Page>();
    if (page) {
      *own = *page;
    } else {
      own->fill(-1);
    }
    page = std::move(own);
  }
  (*page)[s % kStrands] = position;
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
    const Unlike unlike = compare(own->data(), theirs->data(), kStrands);
    if (!unlike.theirs) {
      own = theirs;
    } else if (unlike.own) {
      auto joined = std::make_shared_for_overwrite<Page>();
      later_of(own->data(), theirs->data(), joined->data(), kStrands);
      own = std::move(joined);
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
    const std::int32_t earlier = order_.task_at(order_.queue_of(node), at);
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

// Every edge from a task that is not a put guarantees that the task is over.
void Clocks::finish(std::int32_t unit) {
  const auto at = static_cast<std::size_t>(unit);
  if (waiting_[at] > 0) {
    if (order_.is_task(unit) && !order_.is_put(unit)) {
      joined_.raise(order_.strand_of(unit), order_.strand_position_of(unit));
    }
    rows_[at] = std::move(joined_);
  }
  joined_ = none_;
}

}  // namespace harpe::verifier
