#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "machine/machine.h"
#include "support/diag.h"
#include "transport/ordering.h"
#include "transport/rendezvous.h"

namespace harpe {

// Measures the cost of puts to other hosts, with two or more processes, one on each host. Rank 0
// measures; the others answer.
struct TransportProfileOptions {
  std::string provider = "tcp;ofi_rxm";  // `shared`, or a provider of libfabric
  std::string interface = "";            // "" for any
  transport::Meeting meeting;            // where the processes meet; at least two ranks
  bool quick = false;                    // small sizes and few rounds: figures are rough
  std::function<void(std::string_view stage)> progress = {};
};

// A policy: a burst of puts with a signal each, and a single put.
struct PolicyFigures {
  Fence policy = Fence::PerPut;
  std::optional<Diag> refusal;  // why the provider lacks it; then the rest is empty
  transport::Ordering ordering = transport::Ordering::OperationQuiet;
  double one_way = 0;  // seconds from one put until its signal is seen
  double puts = 0;     // seconds of the burst without signals
  double both = 0;     // seconds with signals, until both have completed remotely
  double quiets = 0;   // ordering points of the burst
};

// Times in seconds, medians.
struct TransportFigures {
  std::string provider;
  transport::Guarantees given;
  int ranks = 2;
  double post = 0;                               // of one in a sequence of many small puts
  double signal = 0;                             // of one in a sequence of many signals
  double flag = 0;                               // a signal, one way
  double one_way = 0;                            // a put of kBurstBytes with its signal, one way
  double quiet = 0;                              // one such put until its completion is known
  double quiet_of_many = 0;                      // kOutstanding of them
  std::vector<std::pair<double, double>> sizes;  // bytes, seconds until complete
  std::vector<PolicyFigures> policies;
};

constexpr std::int64_t kBurstBytes = 4096;  // per put
constexpr int kBurstPuts = 96;              // to each other rank
constexpr int kBurstGroup = 8;              // puts that may share an ordering point
constexpr int kOutstanding = 64;

// Runs on all ranks. On ranks other than 0 the result holds only the provider's guarantees. Errors:
// those of Rendezvous, Endpoint and make_provider; N020, N021 of waits.
[[nodiscard]] Checked<TransportFigures> measure_transport(const TransportProfileOptions& options);

// The recommended policy, and why: among those whose burst takes at most kAlike times the fastest,
// the one that delays signals least. Requires: some policy was not refused.
struct Recommendation {
  Fence policy = Fence::PerPut;
  std::string reason;
};
[[nodiscard]] Recommendation recommend(const TransportFigures& figures);

// A machine of `nodes` nodes with `base`'s processors and this network between them. If `base` has
// nodes already, its network is replaced. Errors: check_machine's.
[[nodiscard]] Checked<Machine> machine_of(const TransportFigures& figures, const Machine& base,
                                          std::int64_t nodes, const std::string& where);

}  // namespace harpe
