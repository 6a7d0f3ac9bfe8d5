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

// What putting into the memory of other hosts costs: measured by rank 0 of two processes or more,
// one on each host, while the others answer.
struct TransportProfileOptions {
  std::string provider = "tcp;ofi_rxm";  // `shared`, or one of libfabric's
  std::string interface = "";            // "" for any
  transport::Meeting meeting;            // where the processes meet; at least two ranks
  bool quick = false;                    // small sizes and few rounds: figures are rough
  std::function<void(std::string_view stage)> progress = {};
};

// A policy over a burst of puts with a signal each, and by itself.
struct PolicyFigures {
  Fence policy = Fence::PerPut;
  std::optional<Diag> refusal;  // why the provider cannot have it; then nothing else
  transport::Ordering ordering = transport::Ordering::OperationQuiet;
  double one_way = 0;  // seconds from one put with its signal until the signal is seen
  double puts = 0;     // seconds of the burst without signals
  double both = 0;     // and with them, until both are complete on the other side
  double quiets = 0;   // ordering points of the burst
};

// Times in seconds, medians.
struct TransportFigures {
  std::string provider;
  transport::Guarantees given;
  int ranks = 2;
  double post = 0;                               // of one of many small puts
  double signal = 0;                             // of one of many signals
  double flag = 0;                               // a signal, one way
  double one_way = 0;                            // a put of kBurstBytes with its signal, one way
  double quiet = 0;                              // one such put until it is known to be complete
  double quiet_of_many = 0;                      // kOutstanding of them
  std::vector<std::pair<double, double>> sizes;  // bytes of a put, until it is known to be complete
  std::vector<PolicyFigures> policies;
};

constexpr std::int64_t kBurstBytes = 4096;  // of a put
constexpr int kBurstPuts = 96;              // to each other rank
constexpr int kBurstGroup = 8;              // puts that may share an ordering point
constexpr int kOutstanding = 64;

// On all ranks; those of the others are empty but for what the provider gives. Errors: those of
// Rendezvous, Endpoint and make_provider; N020, N021 of waits.
[[nodiscard]] Checked<TransportFigures> measure_transport(const TransportProfileOptions& options);

// The policy to choose, and why: of those within kAlike of the fastest burst the one that holds
// signals back least. Requires: some policy was not refused.
struct Recommendation {
  Fence policy = Fence::PerPut;
  std::string reason;
};
[[nodiscard]] Recommendation recommend(const TransportFigures& figures);

// `base`'s processors in `nodes` nodes with this network between them; where `base` has nodes
// already, its network is replaced. Errors: check_machine's.
[[nodiscard]] Checked<Machine> machine_of(const TransportFigures& figures, const Machine& base,
                                          std::int64_t nodes, const std::string& where);

}  // namespace harpe
