#include "exec/cuda/executor/network_layout.h"

#include <algorithm>

#include "exec/describe.h"
#include "support/round_up.h"
#include "sync/nodes.h"

namespace harpe::cuda {
namespace {

constexpr std::int64_t kImageAlign = 256;
constexpr std::int64_t kPage = 4096;

}  // namespace

NetworkLayout lay_out_network(const Plan& plan, const SignalPages& pages,
                              const std::map<TaskId, std::int64_t>& bytes) {
  NetworkLayout layout;
  for (RankId rank(0); rank.value < plan.mesh.ranks(); ++rank.value) {
    const std::int64_t signals = signal_offset(static_cast<std::int32_t>(pages.page(rank).size()));
    layout.inbox_bytes.push_back(round_up(signals, kImageAlign));
    layout.outbox_bytes.push_back(0);
  }
  for (const TaskId put : sync::puts_of(plan)) {
    const RankId to = destination_of(plan, plan.tasks[put.index()]);
    std::int64_t& outbox = layout.outbox_bytes[rank_of(plan, put).index()];
    std::int64_t& inbox = layout.inbox_bytes[to.index()];
    layout.puts[put] = {.bytes = bytes.at(put), .source = outbox, .destination = inbox};
    outbox += round_up(bytes.at(put), kImageAlign);
    inbox += round_up(bytes.at(put), kImageAlign);
  }
  for (std::vector<std::int64_t>* regions : {&layout.inbox_bytes, &layout.outbox_bytes}) {
    for (std::int64_t& region : *regions) region = std::max(kPage, round_up(region, kPage));
  }
  return layout;
}

}  // namespace harpe::cuda
