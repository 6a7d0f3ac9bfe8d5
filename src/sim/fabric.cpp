#include "sim/fabric.h"

#include <algorithm>
#include <array>

#include "leaves/leaf.h"
#include "machine/rates.h"
#include "sim/simulate.h"
#include "support/check.h"

namespace harpe {
namespace {

constexpr std::array kModels = {
    ExpertModel{"qwen3-30b", "Qwen3-30B-A3B", 2048, 768, 128, 8},
    ExpertModel{"gpt-oss-120b", "GPT-OSS-120B", 2880, 2880, 128, 4},
    ExpertModel{"deepseek-v3", "DeepSeek-V3", 7168, 2048, 256, 8},
};

// The most operations per second that GEMMs of the published megakernel reach (FlashMoE, which
// Perseus changes). Fitted to how much slower `put` makes it on 16 nodes than on one. It is a
// property of that kernel, not of a machine.
constexpr double kKernelPeak = 115e12;

// The bursts for which the best policies are reported.
constexpr std::array kRegimeBytes = {256.0, 4096.0, 65536.0, 1048576.0};
constexpr std::array<std::int64_t, 4> kRegimeDestinations = {1, 4, 12, 28};
constexpr std::int64_t kRegimeMessages = 8;  // per destination

// The machine's samples are of a library's GEMMs, so they do not apply to this kernel.
Machine with_published_kernel(Machine machine) {
  for (LeafRate& rate : machine.rates) {
    if (is_leaf(rate.leaf, Leaf::Matmul)) rate.peak = std::min(rate.peak, kKernelPeak);
  }
  std::erase_if(machine.samples,
                [](const LeafSample& sample) { return is_leaf(sample.leaf, Leaf::Matmul); });
  return machine;
}

Fabric fabric_of(const Machine& machine, std::int64_t nodes) {
  const Checked<Fabric> fabric = find_fabric(machine, nodes);
  HP_CHECK(fabric.ok(), "the network was found before");
  return *fabric;
}

BurstRow burst_row(FabricRuns& runs, std::int64_t nodes, const PutPolicy& policy,
                   const Burst& burst) {
  const ExchangeTimes alone = runs.burst(nodes, *find_put_policy("puts"), burst);
  BurstRow row{
      .nodes = nodes, .policy = &policy, .times = runs.burst(nodes, policy, burst), .share = 0};
  row.share = alone.total.seconds() / row.times.total.seconds();
  return row;
}

// GPU-direct has a price, but no back end runs it, so it is never the best policy.
bool can_be_run(const PutPolicy& policy) { return policy.fence && policy.via == Via::Proxy; }

RegimeRow regime_of(FabricRuns& runs, std::int64_t nodes, double bytes, std::int64_t destinations) {
  const Burst burst{
      .messages = kRegimeMessages * destinations, .destinations = destinations, .bytes = bytes};
  RegimeRow row{.nodes = nodes, .bytes = bytes, .destinations = destinations};
  std::map<std::string_view, double> seconds;
  for (const PutPolicy& policy : all_put_policies()) {
    if (!can_be_run(policy) || !runs.has(policy)) continue;
    seconds[policy.name] = runs.burst(nodes, policy, burst).total.seconds();
    if (row.best == nullptr || seconds[policy.name] < seconds[row.best->name]) row.best = &policy;
  }
  row.over_put = seconds.at("put") / seconds.at(row.best->name);
  row.over_batch = seconds.at("batch") / seconds.at(row.best->name);
  return row;
}

void add_regimes(FabricRuns& runs, std::int64_t nodes, FabricStudy& study) {
  const Fabric fabric = fabric_of(runs.machine(), nodes);
  for (const double bytes : kRegimeBytes) {
    for (const std::int64_t destinations : kRegimeDestinations) {
      if (destinations > (fabric.nodes - 1) * fabric.gpus) continue;
      study.regimes.push_back(regime_of(runs, nodes, bytes, destinations));
    }
  }
}

}  // namespace

FabricRuns::FabricRuns(const Machine& machine) : machine_(with_published_kernel(machine)) {}

std::span<const ExpertModel> all_expert_models() { return kModels; }

std::string_view print(FigureRole role) {
  switch (role) {
    case FigureRole::Fitted:
      return "fitted";
    case FigureRole::Formed:
      return "form chosen";
    case FigureRole::HeldOut:
      return "held out";
  }
  return "";
}

double PublishedRow::error() const {
  if (simulated < least) return simulated / least - 1;
  return simulated > most ? simulated / most - 1 : 0;
}

bool FabricRuns::has(const PutPolicy& policy) const {
  const Fabric fabric = fabric_of(machine_, 1);
  const bool counts = machine_.levels[static_cast<std::size_t>(fabric.level)].proxy_count.value > 0;
  if (policy.fence == Fence::Immediate && !counts)
    return false;  // the transport counts no immediate data
  return find_transport(machine_, print(policy.via), fabric.level) != nullptr;
}

ExchangeTimes FabricRuns::burst(std::int64_t nodes, const PutPolicy& policy, const Burst& burst) {
  const ExchangeTimes times = run_exchange(build_burst(fabric_of(machine_, nodes), policy, burst));
  longest_ = std::max(longest_, times.total);
  return times;
}

ExchangeTimes FabricRuns::layer(std::int64_t nodes, const PutPolicy& policy,
                                const ExpertModel& model, std::int64_t tokens) {
  const auto [found, fresh] = layers_.try_emplace(LayerKey{nodes, policy.name, model.name, tokens});
  if (fresh) {
    const ExpertLayer layer{.hidden = model.hidden,
                            .inter = model.inter,
                            .experts = model.experts,
                            .topk = model.topk,
                            .tokens = tokens};
    found->second = run_exchange(build_layer(fabric_of(machine_, nodes), policy, layer));
    longest_ = std::max(longest_, found->second.total);
  }
  return found->second;
}

MessageLine FabricRuns::line(std::int64_t nodes, const PutPolicy& policy, const ExpertModel& model,
                             std::span<const std::int64_t> tokens) {
  double count = 0;
  double x = 0, y = 0, xx = 0, xy = 0, yy = 0;
  for (const std::int64_t some : tokens) {
    const ExpertLayer layer{.experts = model.experts, .topk = model.topk, .tokens = some};
    const double bytes = 2.0 * static_cast<double>(layer.rows() * model.hidden);
    const double seconds = this->layer(nodes, policy, model, some).total.seconds();
    count += 1;
    x += bytes;
    y += seconds;
    xx += bytes * bytes;
    xy += bytes * seconds;
    yy += seconds * seconds;
  }
  MessageLine line;
  const double spread = count * xx - x * x;
  if (spread <= 0) {
    line.alpha_seconds = count > 0 ? y / count : 0;
    return line;
  }
  line.beta_seconds = (count * xy - x * y) / spread;
  line.alpha_seconds = (y - line.beta_seconds * x) / count;
  const double both = count * xy - x * y;
  line.fit = both * both / (spread * (count * yy - y * y));
  return line;
}

Checked<FabricStudy> study_fabric(const Machine& machine, const FabricQuestion& question) {
  for (const std::int64_t nodes : question.nodes) {
    HP_REQUIRE_OK(find_fabric(machine, nodes));
  }
  FabricRuns runs(machine);
  FabricStudy study;
  for (const std::int64_t nodes : question.nodes) {
    const Fabric fabric = fabric_of(machine, nodes);
    const Burst burst{.messages = question.messages,
                      .destinations = std::min(question.messages, (nodes - 1) * fabric.gpus),
                      .bytes = question.bytes};
    for (const PutPolicy* policy : question.policies) {
      if (nodes < 2 || !runs.has(*policy)) continue;
      study.bursts.push_back(burst_row(runs, nodes, *policy, burst));
    }
    if (nodes > 1) add_regimes(runs, nodes, study);
  }
  for (const ExpertModel* model : question.models) {
    for (const std::int64_t nodes : question.nodes) {
      for (const PutPolicy* policy : question.policies) {
        if (!policy->fence || !runs.has(*policy)) continue;
        LayerRow row{.model = model, .nodes = nodes, .policy = policy, .times = {}, .line = {}};
        for (const std::int64_t tokens : question.tokens) {
          row.times.push_back(runs.layer(nodes, *policy, *model, tokens));
        }
        row.line = runs.line(nodes, *policy, *model, question.tokens);
        study.layers.push_back(std::move(row));
      }
    }
  }
  study.published = compare_published(runs);
  HP_REQUIRE_OK(check_time(runs.longest(), "an exchange", machine));
  return study;
}

}  // namespace harpe
