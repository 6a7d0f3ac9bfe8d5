#include "lower/collectives.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "lower/exchange.h"

namespace harpe {
namespace {

// One member per destination, which pulls from every member in ascending rank.
std::vector<DraftTask> as_collective(const Exchange& exchange, std::int32_t group) {
  std::vector<DraftTask> members;
  const CollectiveOp op = is_gather(exchange) ? CollectiveOp::AllGather : CollectiveOp::AllToAll;
  for (std::size_t to = 0; to < exchange.members.size(); ++to) {
    DraftTask member;
    for (const auto& row : exchange.tasks) {
      if (row[to] == nullptr) continue;
      if (member.writes.empty()) {
        member = *row[to];
        continue;
      }
      member.reads.push_back(row[to]->reads[0]);
      member.writes.push_back(row[to]->writes[0]);
    }
    member.rank = exchange.members[to];
    member.kind = TaskKind::Collective;
    member.collective = op;
    member.group = group;
    members.push_back(std::move(member));
  }
  return members;
}

// Finds the first readers of slots from some task on, scanning as few tasks as possible.
class FirstReaders {
 public:
  FirstReaders(const Draft& draft, std::size_t after) : draft_(draft), next_(after) {}

  // The first task that reads one of them.
  std::optional<std::size_t> of(const std::unordered_set<int>& slots) {
    std::optional<std::size_t> first;
    for (const int slot : slots) {
      const auto known = known_.find(slot);
      if (known != known_.end() && (!first || known->second < *first)) first = known->second;
    }
    for (; !first && next_ < draft_.tasks.size(); ++next_) {
      for (const DraftRef& ref : draft_.tasks[next_].reads) {
        known_.try_emplace(ref.slot, next_);
        if (slots.contains(ref.slot)) first = next_;
      }
    }
    return first;
  }

 private:
  const Draft& draft_;
  std::size_t next_;
  std::unordered_map<int, std::size_t> known_;
};

// The task that folds what member `to` receives, if it folds nothing else and does so in ascending
// rank: it runs after the exchange and reads each inbox and its own part once.
std::optional<std::size_t> folder_of(const Draft& draft, const Exchange& exchange, std::size_t to,
                                     FirstReaders& readers) {
  std::unordered_set<int> inboxes;
  for (const auto& row : exchange.tasks) {
    if (row[to] != nullptr) inboxes.insert(row[to]->writes[0].slot);
  }
  const std::optional<std::size_t> at = readers.of(inboxes);
  if (!at) return std::nullopt;
  const DraftTask& folder = draft.tasks[*at];
  const bool folds = folder.kind == TaskKind::Fold || folder.kind == TaskKind::Finalise;
  if (!folds || folder.writes.size() != 1 || folder.reads.size() != exchange.members.size()) {
    return std::nullopt;
  }
  std::vector<RankId> ascending = exchange.members;
  std::ranges::sort(ascending);
  for (std::size_t i = 0; i < ascending.size(); ++i) {
    const auto from = static_cast<std::size_t>(std::ranges::find(exchange.members, ascending[i]) -
                                               exchange.members.begin());
    const DraftTask* sent = exchange.tasks[from][to];
    if (folder.reads[i].blocks != folder.writes[0].blocks) return std::nullopt;
    if (sent == nullptr ? from != to : sent->writes[0].slot != folder.reads[i].slot) {
      return std::nullopt;
    }
  }
  return at;
}

// The slots in which a reduce-scatter leaves its sums: one for each slot of the drain, shared by
// all its instances.
class SumSlots {
 public:
  explicit SumSlots(Draft& draft) : draft_(draft) {}

  int of(const DraftSlot& inbox) {
    // "nest.C.in0.from3.1" -> "nest.C.in0.scattered.1"
    const std::size_t from = inbox.name.rfind(".from");
    const std::string name =
        inbox.name.substr(0, from) + ".scattered" + inbox.name.substr(inbox.name.rfind('.'));
    const auto [known, fresh] =
        known_.try_emplace({inbox.rank, name}, static_cast<int>(draft_.slots.size()));
    if (fresh) {
      const auto buffer = static_cast<std::size_t>(inbox.buffer);
      draft_.slots.push_back({.rank = inbox.rank,
                              .name = name,
                              .buffer = inbox.buffer,
                              .level = Level::Sum,
                              .dtype = state_dtype(draft_.blocks.buffers()[buffer].dtype),
                              .holds = inbox.holds});
    }
    return known->second;
  }

 private:
  Draft& draft_;
  std::map<std::pair<RankId, std::string>, int> known_;
};

// Rewrites one exchange of partial sums with its folds; false if it does not have that form.
bool reduce_scatter(Draft& draft, const Exchange& exchange, FirstReaders& readers, SumSlots& sums,
                    std::int32_t group, std::vector<DraftTask>& out) {
  std::vector<std::size_t> folders;
  for (std::size_t to = 0; to < exchange.members.size(); ++to) {
    const std::optional<std::size_t> folder = folder_of(draft, exchange, to, readers);
    if (!folder) return false;
    const DraftTask& task = draft.tasks[*folder];
    const Nest& nest = draft.program.nests[static_cast<std::size_t>(task.nest)];
    if (nest.stmts[static_cast<std::size_t>(task.stmt)].monoid != Monoid::Sum) return false;
    folders.push_back(*folder);
  }
  for (std::size_t to = 0; to < exchange.members.size(); ++to) {
    DraftTask& folder = draft.tasks[folders[to]];
    const DraftTask* like = exchange.tasks[to == 0 ? 1 : 0][to];
    const DraftSlot inbox = draft.slot(like->writes[0]);
    DraftTask member = *like;
    member.rank = exchange.members[to];
    member.kind = TaskKind::Collective;
    member.collective = CollectiveOp::ReduceScatter;
    member.group = group;
    member.nest = folder.nest;
    member.stmt = folder.stmt;
    member.wire = inbox.dtype;
    member.reads = folder.reads;
    std::unordered_map<int, const DraftRef*> sent;
    for (const auto& row : exchange.tasks) {
      if (row[to] != nullptr) sent[row[to]->writes[0].slot] = &row[to]->reads[0];
    }
    for (DraftRef& read : member.reads) {  // read at the source instead of the inbox
      if (const auto found = sent.find(read.slot); found != sent.end()) read = *found->second;
    }
    const int sum = sums.of(inbox);
    member.writes = {{sum, WriteMode::Init, folder.writes[0].blocks}};
    folder.reads = {{sum, WriteMode::Read, folder.writes[0].blocks}};
    out.push_back(std::move(member));
  }
  return true;
}

}  // namespace

void recognise_collectives(Draft& draft) {
  std::vector<DraftTask> out;
  SumSlots sums(draft);
  RunCheck runs(draft);
  std::int32_t groups = 0;
  for (std::size_t begin = 0; begin < draft.tasks.size();) {
    const std::size_t end = instance_end(draft, begin);
    const DraftTask& first = draft.tasks[begin];
    std::vector<Exchange> exchanges;
    if (first.kind == TaskKind::Copy && first.via == Via::Nccl && first.how == How::Bulk) {
      exchanges = exchanges_of(draft, begin, end);
    }
    const bool all = !exchanges.empty() && std::ranges::all_of(exchanges, [&](const Exchange& e) {
      return is_regular(draft, runs, e);
    });
    FirstReaders readers(draft, end);
    for (const Exchange& exchange : exchanges) {
      if (!all) break;
      if (!reduce_scatter(draft, exchange, readers, sums, groups, out)) {
        for (DraftTask& member : as_collective(exchange, groups)) out.push_back(std::move(member));
      }
      ++groups;
    }
    for (std::size_t i = begin; !all && i < end; ++i) out.push_back(draft.tasks[i]);
    begin = end;
  }
  draft.tasks = std::move(out);
}

}  // namespace harpe
