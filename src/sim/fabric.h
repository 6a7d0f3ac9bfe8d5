#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "machine/machine.h"
#include "sim/exchange.h"
#include "support/diag.h"

namespace harpe {

// The study of `harpe fabric`: it compares the policies by which receivers detect puts on a
// machine's network, for bursts of puts and for layers of experts (docs/fabric.md). Every time is a
// run of sim/exchange.h.

struct ExpertModel {
  std::string_view name;
  std::string_view title;
  std::int64_t hidden = 0;
  std::int64_t inter = 0;
  std::int64_t experts = 0;
  std::int64_t topk = 0;
};
[[nodiscard]] std::span<const ExpertModel> all_expert_models();

// T = alpha + beta M, by least squares over tokens. M is the number of bytes of one message.
struct MessageLine {
  double alpha_seconds = 0;
  double beta_seconds = 0;  // per byte
  double fit = 0;           // R squared
};

// Runs on one machine, each made once, with GEMMs at the rate of the published megakernel.
class FabricRuns {
 public:
  explicit FabricRuns(const Machine& machine);

  // True if the network has the policy's transport and, for immediate data, a time to count it.
  [[nodiscard]] bool has(const PutPolicy& policy) const;
  // Requires: has, and find_fabric for the nodes.
  [[nodiscard]] ExchangeTimes burst(std::int64_t nodes, const PutPolicy& policy,
                                    const Burst& burst);
  [[nodiscard]] ExchangeTimes layer(std::int64_t nodes, const PutPolicy& policy,
                                    const ExpertModel& model, std::int64_t tokens);
  // Fitted over several numbers of tokens.
  [[nodiscard]] MessageLine line(std::int64_t nodes, const PutPolicy& policy,
                                 const ExpertModel& model, std::span<const std::int64_t> tokens);
  [[nodiscard]] const Machine& machine() const { return machine_; }
  [[nodiscard]] Picoseconds longest() const { return longest_; }  // of all runs

 private:
  using LayerKey = std::tuple<std::int64_t, std::string_view, std::string_view, std::int64_t>;

  Machine machine_;
  std::map<LayerKey, ExchangeTimes> layers_;
  Picoseconds longest_;
};

struct FabricQuestion {
  std::vector<const ExpertModel*> models;
  std::vector<std::int64_t> nodes;
  std::vector<const PutPolicy*> policies;
  std::vector<std::int64_t> tokens;
  std::int64_t messages = 96;
  double bytes = 4096;
};

struct BurstRow {
  std::int64_t nodes = 0;
  const PutPolicy* policy = nullptr;
  ExchangeTimes times;
  double share = 0;  // speed relative to puts without signals
};
struct LayerRow {
  const ExpertModel* model = nullptr;
  std::int64_t nodes = 0;
  const PutPolicy* policy = nullptr;
  std::vector<ExchangeTimes> times;  // by tokens
  MessageLine line;
};
// The best executable policy for one burst.
struct RegimeRow {
  std::int64_t nodes = 0;
  double bytes = 0;
  std::int64_t destinations = 0;
  const PutPolicy* best = nullptr;
  double over_put = 1;    // speed-up over `put`, a quiet behind every put
  double over_batch = 1;  // speed-up over `batch`, both of Perseus' techniques together
};

enum class FigureRole : std::uint8_t {
  Fitted,   // a figure of the machine was chosen to give this result
  Formed,   // no figure was fitted to it, but a formula was chosen knowing it
  HeldOut,  // nothing was chosen to give this result
};
[[nodiscard]] std::string_view print(FigureRole role);
// A published figure beside the simulated one.
struct PublishedRow {
  std::string what;
  std::string unit;
  FigureRole role = FigureRole::HeldOut;
  double least = 0;  // published; a range if `most` is larger
  double most = 0;
  double simulated = 0;
  [[nodiscard]] double error() const;  // relative; 0 within the range
};

struct FabricStudy {
  std::vector<BurstRow> bursts;
  std::vector<LayerRow> layers;
  std::vector<RegimeRow> regimes;
  std::vector<PublishedRow> published;  // for networks of shipped machines
};
// Errors: find_fabric's, check_time's.
[[nodiscard]] Checked<FabricStudy> study_fabric(const Machine& machine,
                                                const FabricQuestion& question);
// The published figures of the network that a shipped machine is fitted to; none for other
// machines.
[[nodiscard]] std::vector<PublishedRow> compare_published(FabricRuns& runs);

}  // namespace harpe
