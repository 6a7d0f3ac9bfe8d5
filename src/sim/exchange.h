#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/form.h"
#include "machine/machine.h"
#include "sim/engine.h"
#include "sim/puts.h"
#include "sim/workload.h"
#include "support/diag.h"

namespace harpe {

// The traffic of GPUs of several nodes through NICs, without a plan: at sizes that plans do not
// reach, with tiles that run as their inputs arrive. It consists of the same activities as plans
// (sim/cost.h, sim/puts.h) and runs on the same engine. All GPUs do the same, each seen from
// itself, so that one GPU represents all (docs/fabric.md).

// How receivers detect puts: the policies of `harpe fabric`.
struct PutPolicy {
  std::string_view name;
  std::string_view summary;
  Via via = Via::Proxy;        // or Ibgda
  std::optional<Fence> fence;  // none: puts without signals
};
[[nodiscard]] std::span<const PutPolicy> all_put_policies();
[[nodiscard]] const PutPolicy* find_put_policy(std::string_view name);

// The GPUs of the first `nodes` groups of the level that has NICs.
struct Fabric {
  const Machine* machine = nullptr;
  int level = 0;
  std::int64_t nodes = 2;
  std::int64_t gpus = 1;  // per node
  [[nodiscard]] std::int64_t ranks() const { return nodes * gpus; }
};
// The innermost level with a transport `proxy`. Errors: M117 too few nodes, M118 no NIC at any
// level.
[[nodiscard]] Checked<Fabric> find_fabric(const Machine& machine, std::int64_t nodes);

// Which GPUs are simulated.
enum class Stand : std::uint8_t {
  One,   // one for all
  Each,  // each by itself; the times are the same
};

// Every GPU puts `messages` of `bytes` each to `destinations` GPUs of other nodes, the same number
// to each.
struct Burst {
  std::int64_t messages = 1;
  std::int64_t destinations = 1;
  double bytes = 0;
};

// A layer of experts: every GPU has `tokens` of its own, and each token goes to `topk` of
// `experts`. Experts are spread evenly over GPUs, and choices evenly over experts.
struct ExpertLayer {
  std::int64_t hidden = 0;
  std::int64_t inter = 0;
  std::int64_t experts = 0;
  std::int64_t topk = 0;
  std::int64_t tokens = 0;
  [[nodiscard]] std::int64_t rows() const;  // of one GPU for one expert: at least 1
};

struct ExchangeWorkload {
  Workload workload;
  std::vector<ActivityRole> roles;  // per activity
  std::vector<std::int32_t> tiles;  // of the first GPU's GEMMs
  double tile_seconds = 0;          // all tiles together, alone
};
[[nodiscard]] ExchangeWorkload build_burst(const Fabric& fabric, const PutPolicy& policy,
                                           const Burst& burst, Stand stand = Stand::One);
// Dispatch, the experts' tiles as arrivals release them, and combine, in one persistent kernel: one
// put per expert for dispatch, one put per tile of 128 rows back (docs/fabric.md).
[[nodiscard]] ExchangeWorkload build_layer(const Fabric& fabric, const PutPolicy& policy,
                                           const ExpertLayer& layer, Stand stand = Stand::One);

struct ExchangeTimes {
  Picoseconds total;   // until the last GPU has seen its last signal, or has its last result
  Picoseconds fences;  // of one GPU's put queue: waiting for quiets and executing them
  double busy = 0;     // the share of the total in which one GPU's SMs run GEMMs
};
[[nodiscard]] ExchangeTimes run_exchange(const ExchangeWorkload& exchange);

}  // namespace harpe
